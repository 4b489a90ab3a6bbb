#pragma once

// The constructors that decoder_table.cpp gathers, one a codec family.

#include <memory>

#include "codegen/kernels/decoder.h"

namespace cortiq::codegen {

using DecoderFactory = std::unique_ptr<Decoder> (*)(Emit&, const KernelSpec&, formats::R16Format);

std::unique_ptr<Decoder> make_float_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q8_row_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q8_0_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_nibble_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq4_nl_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q4tp_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q5_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q4_k_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q5_k_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q6_k_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_two_bit_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_g8_0_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_i2_s_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_one_bit_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_sign_row_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_fv5_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_int8_f32_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_ternary_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_mxfp4_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_nvfp4_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_stq1_0_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q2_k_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q3_k_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq4_xs_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq2_xxs_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq2_xs_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq2_s_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq3_xxs_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq3_s_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq1_s_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_iq1_m_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_i8_s_decoder(Emit&, const KernelSpec&, formats::R16Format);
std::unique_ptr<Decoder> make_q2tp_decoder(Emit&, const KernelSpec&, formats::R16Format);

} // namespace cortiq::codegen

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

} // namespace cortiq::codegen

#include "codegen/kernels/decoder.h"
#include "codegen/kernels/decoders/decoders.h"

namespace cortiq::codegen {

using formats::CodecId;

namespace {

struct DecoderRow {
  CodecId codec;
  DecoderFactory make;
};

constexpr DecoderRow kDecoders[] = {
    {CodecId::kF32, make_float_decoder},         {CodecId::kF16, make_float_decoder},
    {CodecId::kBF16, make_float_decoder},        {CodecId::kQ8Row, make_q8_row_decoder},
    {CodecId::kQ82F, make_q8_row_decoder},       {CodecId::kQ4Block, make_nibble_decoder},
    {CodecId::kQ4Tiled, make_nibble_decoder},    {CodecId::kQ4TP, make_q4tp_decoder},
    {CodecId::kQ4_0, make_nibble_decoder},       {CodecId::kQ4_1, make_nibble_decoder},
    {CodecId::kQ5_0, make_q5_decoder},           {CodecId::kQ5_1, make_q5_decoder},
    {CodecId::kQ8_0, make_q8_0_decoder},         {CodecId::kQ4_K, make_q4_k_decoder},
    {CodecId::kQ5_K, make_q5_k_decoder},         {CodecId::kQ6_K, make_q6_k_decoder},
    {CodecId::kIQ4_NL, make_iq4_nl_decoder},     {CodecId::kQ2TP, make_q2tp_decoder},
    {CodecId::kQ2TPAffine, make_q2tp_decoder},   {CodecId::kQ1, make_one_bit_decoder},
    {CodecId::kQ1G, make_one_bit_decoder},       {CodecId::kQ1_0, make_one_bit_decoder},
    {CodecId::kMXFP4, make_mxfp4_decoder},       {CodecId::kMXFP4_GGML, make_mxfp4_decoder},
    {CodecId::kNVFP4, make_nvfp4_decoder},       {CodecId::kQ2_K, make_q2_k_decoder},
    {CodecId::kQ3_K, make_q3_k_decoder},         {CodecId::kQ8_K, make_int8_f32_decoder},
    {CodecId::kFV5B, make_int8_f32_decoder},     {CodecId::kFV5, make_fv5_decoder},
    {CodecId::kI8_S, make_i8_s_decoder},         {CodecId::kI2_S, make_i2_s_decoder},
    {CodecId::kTQ2_0, make_two_bit_decoder},     {CodecId::kQ2_0, make_two_bit_decoder},
    {CodecId::kQ2_0_G128, make_two_bit_decoder}, {CodecId::kG8_0, make_g8_0_decoder},
    {CodecId::kTQ1_0, make_ternary_decoder},     {CodecId::kPTQ1_0, make_ternary_decoder},
    {CodecId::kSTQ1_0, make_stq1_0_decoder},     {CodecId::kQ1S, make_one_bit_decoder},
    {CodecId::kQ1T, make_ternary_decoder},       {CodecId::kIQ4_XS, make_iq4_xs_decoder},
    {CodecId::kIQ2_XXS, make_iq2_xxs_decoder},   {CodecId::kIQ2_XS, make_iq2_xs_decoder},
    {CodecId::kIQ2_S, make_iq2_s_decoder},       {CodecId::kIQ3_XXS, make_iq3_xxs_decoder},
    {CodecId::kIQ3_S, make_iq3_s_decoder},       {CodecId::kIQ1_S, make_iq1_s_decoder},
    {CodecId::kIQ1_M, make_iq1_m_decoder},       {CodecId::kBLRU, make_sign_row_decoder},
    {CodecId::kBLRV, make_sign_row_decoder},
};

const DecoderRow* find(CodecId codec) {
  for (const DecoderRow& row : kDecoders)
    if (row.codec == codec)
      return &row;
  return nullptr;
}

} // namespace

std::unique_ptr<Decoder> make_decoder(Emit& emit, const KernelSpec& spec, formats::R16Format format) {
  const DecoderRow* row = find(spec.codec);
  return row ? row->make(emit, spec, std::move(format)) : nullptr;
}

bool has_decoder(CodecId codec) {
  return find(codec) != nullptr;
}

std::vector<unsigned> Decoder::step_order(unsigned span) const {
  std::vector<unsigned> order(geometry().span / 4);
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  return order;
}

} // namespace cortiq::codegen

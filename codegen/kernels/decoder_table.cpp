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
    {CodecId::kF32, make_float_decoder},      {CodecId::kF16, make_float_decoder},
    {CodecId::kBF16, make_float_decoder},     {CodecId::kQ8Row, make_q8_row_decoder},
    {CodecId::kQ82F, make_q8_row_decoder},    {CodecId::kQ4Block, make_nibble_decoder},
    {CodecId::kQ4Tiled, make_nibble_decoder}, {CodecId::kQ4TP, make_q4tp_decoder},
    {CodecId::kQ4_0, make_nibble_decoder},    {CodecId::kQ4_1, make_nibble_decoder},
    {CodecId::kQ5_0, make_q5_decoder},        {CodecId::kQ5_1, make_q5_decoder},
    {CodecId::kQ8_0, make_q8_0_decoder},      {CodecId::kQ4_K, make_q4_k_decoder},
    {CodecId::kQ5_K, make_q5_k_decoder},      {CodecId::kQ6_K, make_q6_k_decoder},
    {CodecId::kIQ4_NL, make_iq4_nl_decoder},
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

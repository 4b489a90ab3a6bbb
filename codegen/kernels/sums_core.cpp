#include "codegen/kernels/sums_core.h"

#include <algorithm>

namespace cortiq::codegen {

using formats::KernelArgs;

SumsCore::SumsCore(CoreContext& c, Value args)
    : c_(c), e_(c.e), g_(c.geometry), sums_bytes_(int64_t(formats::tile_kernel_tokens(c.spec.tokens)) * kRowBytes),
      groups_(e_.load_index(args, offsetof(KernelArgs, groups))),
      tokens_(e_.load_index(args, offsetof(KernelArgs, tokens))),
      out_stride_(e_.load_index(args, offsetof(KernelArgs, out_stride))) {
  if (c.spec.residual)
    residual_stride_ = e_.load_index(args, offsetof(KernelArgs, residual_stride));
}

void SumsCore::epilogue(Address group, Value sums, const Output& output) {
  std::vector<Value> row_scale(c_.vectors), bias(c_.vectors);
  std::vector<unsigned> lanes(c_.vectors);
  std::vector<int64_t> disp(c_.vectors);
  for (unsigned v = 0; v < c_.vectors; ++v) {
    disp[v] = int64_t(v) * e_.vector_bytes();
    lanes[v] = std::min(c_.spec.rows - v * e_.lanes(), e_.lanes());
    if (g_.row_scale)
      row_scale[v] = c_.decoder.row_scale(group, v);
    if (output.bias)
      bias[v] = e_.load(e_.f32(), {output.bias, disp[v]}, lanes[v]);
  }
  std::vector<Value> carried = {output.out};
  if (output.residual)
    carried.push_back(output.residual);
  e_.loop(e_.index(0), tokens_, 1, carried, [&](Value token, const std::vector<Value>& in) {
    Value from = e_.offset(sums, token, kRowBytes);
    for (unsigned v = 0; v < c_.vectors; ++v) {
      Value y = e_.load(e_.f32(), {from, disp[v]});
      if (row_scale[v])
        y = e_.mul(y, row_scale[v]);
      if (bias[v])
        y = e_.add(y, bias[v]);
      if (output.residual)
        y = e_.add(y, e_.load(e_.f32(), {in[1], disp[v]}, lanes[v]));
      e_.store(y, {in[0], disp[v]}, lanes[v]);
    }
    std::vector<Value> next = {e_.offset(in[0], out_stride_, 1)};
    if (output.residual)
      next.push_back(e_.offset(in[1], residual_stride_, 1));
    return next;
  });
}

} // namespace cortiq::codegen

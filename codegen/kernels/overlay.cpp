// Registers: number[v] the entry that each row is at, acc[t][v] the sums. Pseudocode of a group:
//
//   find first[v], end[v]; rounds = the largest end - first of a row
//   rounds times: active = number < end; column, value = entry(number)
//     w = value - decoder.weight_at(column), 0 where not active;  acc[t] = fma(w, x[t][column], acc[t]);  number += 1

#include "codegen/kernels/overlay.h"

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

using formats::KernelArgs;

Overlay::Overlay(Emit& e, const KernelSpec& spec, const formats::R16Format& format, unsigned vectors, Value args,
                 Address scratch)
    : e_(e), rows_(spec.rows), vectors_(vectors), scratch_(scratch), reader_(make_overlay_reader(e, spec, vectors)) {
  // Behind the groups, at the next multiple of 64 of the packed tensor: what is missing to it has six bits.
  constexpr int32_t kAlignment = 64;
  Value tensor = e_.load_ptr(args, offsetof(KernelArgs, tensor));
  Value end = e_.offset(e_.offset(tensor, int64_t(format.tensor_bytes)),
                        e_.load_index(args, offsetof(KernelArgs, tensor_rows)), int64_t(format.row_bytes()));
  Value bytes = e_.mul(e_.load_splat_i32({args, offsetof(KernelArgs, tensor_rows)}),
                       e_.splat_i32(int32_t(format.row_bytes() % kAlignment)));
  Value padding = e_.bit_and(e_.sub(e_.splat_i32(0), bytes), e_.splat_i32(kAlignment - 1));
  e_.store(padding, scratch_, 1);
  carried_ = reader_->begin_call(args, e_.offset(end, e_.read_index(scratch_), 1), scratch_);
}

std::vector<Value> Overlay::begin_group(const std::vector<Value>& carried) {
  group_ = reader_->begin_group(carried);
  // The most entries of a row, taken over the lanes by way of memory; exact, as a row has fewer than 2^24.
  for (unsigned v = 0; v < vectors_; ++v)
    e_.store(e_.to_f32(e_.sub(group_.end[v], group_.first[v])), scratch_ + int64_t(v) * e_.vector_bytes());
  Value most = e_.splat_f32(0);
  for (unsigned r = 0; r < rows_; ++r)
    most = e_.fmax(e_.load_splat_f32(scratch_ + int64_t(r) * 4), most);
  e_.store(e_.to_i32(most), scratch_, 1);
  rounds_ = e_.read_index(scratch_);
  return group_.next;
}

/// The activation of each row's own column.
Value Overlay::activation(const CoreContext& c, size_t t, Value column) {
  if (c.spec.arm == Arm::kExact)
    return e_.gather_f32({c.tokens[t], 0}, column, 4);
  const int64_t scales = int64_t(formats::q8_act_layout(c.spec.k).scale);
  Value code = e_.shr_s(e_.shl(e_.gather_i32({c.tokens[t], 0}, column, 1), 24), 24);
  return e_.mul(e_.to_f32(code), e_.gather_f32({c.tokens[t], scales}, e_.shr_u(column, 5), 4));
}

Sums Overlay::correct(const CoreContext& c, Address group, Sums sums) {
  const size_t count = sums.size();
  std::vector<Value> carried = std::move(sums);
  carried.insert(carried.end(), group_.first.begin(), group_.first.end());
  carried = e_.loop(e_.index(0), rounds_, 1, carried, [&](Value, const std::vector<Value>& in) {
    std::vector<Value> next = in;
    for (unsigned v = 0; v < vectors_; ++v) {
      Value number = in[count + v];
      Value active = e_.shr_s(e_.sub(number, group_.end[v]), 31);
      const OverlayReader::Entry entry = reader_->entry(v, e_.bit_and(number, active), active);
      Value weight = e_.sub(entry.value, c.decoder.weight_at(group, v, entry.column));
      weight = e_.bitcast(e_.bit_and(e_.bitcast(weight, e_.i32()), active), e_.f32());
      for (size_t t = 0; t < c.tokens.size(); ++t)
        next[t * vectors_ + v] = e_.fma(weight, activation(c, t, entry.column), in[t * vectors_ + v]);
      next[count + v] = e_.add(number, e_.splat_i32(1));
    }
    return next;
  });
  carried.resize(count);
  return carried;
}

} // namespace cortiq::codegen

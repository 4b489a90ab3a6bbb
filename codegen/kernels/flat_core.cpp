// The core of codecs whose blocks run over row ends, on payloads as they stand in the file: q4_block with a row length
// that is no multiple of 32. No row starts on a block, so every weight is found by its flat number f = row * K + k:
//
//   w = (nibble f of the code plane - 8) * scale[f / 32]
//
// Data (CMF specification 2.3): codes, 16 bytes a block of 32, low nibble first; then one f16 scale a block. Both
// planes are reached by gathers, a row a lane. The lanes of a short group repeat its last row, so nothing outside the
// tensor is read; a gather of four bytes ends inside the tail padding that the layout states. Registers: flat[v] the
// flat numbers, carried over K; acc[t][v] the sums.

#include "codegen/kernels/flat_core.h"

#include "formats/artifact/kernel_abi.h"
#include <algorithm>

namespace cortiq::codegen {
namespace {

constexpr unsigned kBlock = 32;

} // namespace

FlatCore::FlatCore(Emit& e, const KernelSpec& spec, Value args)
    : e_(e), spec_(spec), vectors_((spec.rows + e.lanes() - 1) / e.lanes()),
      payload_(e.load_ptr(args, offsetof(formats::KernelArgs, tensor))) {
  // Scale number of block 0, in f16 from the payload's start: ceil(rows * K / 32) blocks of 16 code bytes lie before.
  Value rows = e_.load_splat_i32({args, offsetof(formats::KernelArgs, tensor_rows)});
  Value weights = e_.mul(rows, e_.splat_i32(int32_t(spec_.k)));
  Value blocks = e_.shr_u(e_.add(weights, e_.splat_i32(kBlock - 1)), 5);
  first_scale_ = e_.shl(blocks, 3);
}

std::vector<Value> FlatCore::first_numbers(Value args) {
  Value first_row = e_.load_splat_i32({args, offsetof(formats::KernelArgs, first_row)});
  Value base = e_.mul(first_row, e_.splat_i32(int32_t(spec_.k)));
  std::vector<Value> flat;
  for (unsigned v = 0; v < vectors_; ++v) {
    std::vector<int32_t> lane(e_.lanes());
    for (unsigned l = 0; l < e_.lanes(); ++l)
      lane[l] = int32_t(std::min(v * e_.lanes() + l, spec_.rows - 1) * spec_.k);
    flat.push_back(e_.add(base, e_.lanes_i32(lane)));
  }
  return flat;
}

std::vector<Value> FlatCore::next_group(const std::vector<Value>& flat) {
  std::vector<Value> next;
  for (Value f : flat)
    next.push_back(e_.add(f, e_.splat_i32(int32_t(spec_.rows * spec_.k))));
  return next;
}

Value FlatCore::weight(Value flat) {
  Value mask = e_.splat_i32(15);
  Value pair = e_.gather_i32({payload_, 0}, e_.shr_u(flat, 1), 1);
  Value low = e_.bit_and(pair, mask);
  Value high = e_.bit_and(e_.shr_u(pair, 4), mask);
  Value odd = e_.sub(e_.splat_i32(0), e_.bit_and(flat, e_.splat_i32(1))); // all ones where the high nibble is meant
  Value code = e_.bit_xor(low, e_.bit_and(e_.bit_xor(low, high), odd));
  Value level = e_.to_f32(e_.sub(code, e_.splat_i32(8)));
  Value scale = e_.gather_i32({payload_, 0}, e_.add(first_scale_, e_.shr_u(flat, 5)), 2);
  return e_.mul(level, e_.half_bits_to_f32(scale));
}

Sums FlatCore::run(const std::vector<Value>& tokens, const std::vector<Value>& flat) {
  std::vector<Value> carried(spec_.tokens * vectors_, e_.splat_f32(0));
  const size_t sums = carried.size();
  carried.insert(carried.end(), flat.begin(), flat.end());
  carried = e_.loop(e_.index(0), e_.index(int64_t(spec_.k)), 1, carried, [&](Value k, const std::vector<Value>& in) {
    std::vector<Value> next = in;
    std::vector<Value> w;
    for (unsigned v = 0; v < vectors_; ++v) {
      w.push_back(weight(in[sums + v]));
      next[sums + v] = e_.add(in[sums + v], e_.splat_i32(1));
    }
    for (unsigned t = 0; t < spec_.tokens; ++t) {
      Value x = e_.load_splat_f32({e_.offset(tokens[t], k, 4), 0});
      for (unsigned v = 0; v < vectors_; ++v)
        next[t * vectors_ + v] = e_.fma(w[v], x, in[t * vectors_ + v]);
    }
    return next;
  });
  carried.resize(sums);
  return carried;
}

} // namespace cortiq::codegen

#include "codegen/kernels/decoders/codebook.h"

namespace cortiq::codegen {

Value Codebook::spread_sign_indices(Value word) {
  Value bytes = e_.bit_and(word, e_.splat_i32(0x7f));
  for (unsigned l = 1; l < 4; ++l)
    bytes = e_.bit_or(bytes, e_.bit_and(e_.shl(word, l), e_.splat_i32(0x7f << (8 * l))));
  return with_parity(bytes);
}

Value Codebook::with_parity(Value bytes) {
  std::vector<int8_t> odd;
  for (unsigned nibble = 0; nibble < 16; ++nibble)
    odd.push_back(__builtin_parity(nibble) ? int8_t(-128) : int8_t(0));
  Value table = e_.table16(odd), mask = e_.splat_i8(0x0f);
  bytes = e_.bitcast(bytes, e_.i8());
  Value high = e_.bitcast(e_.shr_u(e_.bitcast(bytes, e_.i16()), 4), e_.i8());
  Value parity = e_.bit_xor(e_.lookup16(table, e_.bit_and(bytes, mask)), e_.lookup16(table, e_.bit_and(high, mask)));
  return e_.bit_or(bytes, parity);
}

Value Codebook::negated(Value magnitudes, Value signs, unsigned byte, unsigned half) {
  std::vector<int8_t> repeat, not_zero(16, -1);
  for (unsigned i = 0; i < 16; ++i)
    repeat.push_back(int8_t(i / 4 * 4 + byte));
  not_zero[0] = 0;
  signs = e_.lookup16(e_.bitcast(signs, e_.i8()), e_.table16(repeat));
  if (half)
    signs = e_.bitcast(e_.shr_u(e_.bitcast(signs, e_.i16()), 4), e_.i8());
  Value own = e_.bit_and(signs, e_.bitcast(e_.splat_i32(0x08040201), e_.i8()));
  Value negative = e_.lookup16(e_.table16(not_zero), own);
  return e_.sub(e_.bit_xor(magnitudes, negative), negative);
}

Value Codebook::fields(Value word, unsigned start, unsigned stride, unsigned to) {
  std::vector<uint8_t> first;
  for (unsigned i = 0; i < 8; ++i)
    first.push_back(uint8_t((32 * (i / 4) + start + stride * (i % 4) + 64 - to) % 64));
  return e_.bit_fields(e_.bytes(first), e_.bitcast(word, e_.i8()));
}

Value Codebook::lookup_bytes(const std::vector<uint8_t>& table, Value index, const std::vector<Value>& high) {
  index = e_.bitcast(index, e_.i8());
  std::vector<Value> part;
  for (auto at = table.begin(); at != table.end(); at += 128)
    part.push_back(e_.lookup128(e_.bytes({at, at + 64}), e_.bytes({at + 64, at + 128}), index));
  for (size_t bit = 0; part.size() > 1; ++bit) {
    Value choice = bit == 0 ? index : e_.bitcast(high[bit - 1], e_.i8());
    for (size_t i = 0; i < part.size() / 2; ++i)
      part[i] = e_.select_negative(choice, part[2 * i + 1], part[2 * i]);
    part.resize(part.size() / 2);
  }
  return part[0];
}

} // namespace cortiq::codegen

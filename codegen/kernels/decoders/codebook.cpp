#include "codegen/kernels/decoders/codebook.h"

#include <bit>

namespace cortiq::codegen {

Value Codebook::signs_by_index(Value index) {
  std::vector<uint8_t> signs;
  for (unsigned i = 0; i < 128; ++i)
    signs.push_back(uint8_t(i | (__builtin_parity(i) ? 0x80 : 0)));
  return lookup_bytes(signs, index, {});
}

Value Codebook::spread_sign_indices(Value word) {
  if (e_.byte_tables())
    return signs_by_index(fields(word, 0, 7, 0));
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

std::vector<uint8_t> Codebook::order_of_halves(unsigned width) {
  using Halves = std::array<std::array<uint8_t, 4>, 2>; // the first weight of each in a group
  constexpr Halves kFour = {{{0, 8, 16, 24}, {4, 12, 20, 28}}};
  constexpr Halves kByBytes = {{{0, 4, 8, 12}, {16, 20, 24, 28}}};
  constexpr Halves kByWords = {{{0, 8, 4, 12}, {16, 24, 20, 28}}};
  std::vector<uint8_t> order;
  for (const auto& halves : width == 0 ? kFour : width == 8 ? kByBytes : kByWords)
    for (uint8_t i = 0; i < 4; ++i)
      for (const uint8_t weight : halves)
        order.push_back(uint8_t(weight + i));
  return order;
}

Value Codebook::turned_part(Value first, Value second, unsigned part, unsigned width) {
  if (width == 0)
    return part ? second : first;
  first = e_.bitcast(first, e_.i32());
  second = e_.bitcast(second, e_.i32());
  return e_.bitcast(part ? low_and_high(e_.shr_u(first, width), second, width)
                         : low_and_high(first, e_.shl(second, width), width),
                    e_.i8());
}

Value Codebook::gathered_part(const std::vector<uint8_t>& first, const std::vector<uint8_t>& second, unsigned width,
                              Value entry, Value next_entry) {
  std::vector<uint32_t> words = {0}; // what a load that begins before the first entry finds
  for (size_t i = 0; i < first.size(); ++i)
    words.push_back(uint32_t(first[i]) | uint32_t(second[i]) << width);
  Value table = e_.table(words);
  const int64_t between = (24 - width) / 8; // the next entry's halves fill the gaps
  return e_.bitcast(e_.bit_or(e_.gather_i32({table, 4}, entry, 4), e_.gather_i32({table, 4 - between}, next_entry, 4)),
                    e_.i8());
}

Value Codebook::fields(Value word, unsigned start, unsigned stride, unsigned to) {
  return fields_at(word, {start, start + stride, start + 2 * stride, start + 3 * stride}, to);
}

Value Codebook::fields_at(Value word, const std::array<unsigned, 4>& start, unsigned to) {
  std::vector<uint8_t> first;
  for (unsigned i = 0; i < 8; ++i)
    first.push_back(uint8_t((32 * (i / 4) + start[i % 4] + 64 - to) % 64));
  return e_.bit_fields(e_.bytes(first), e_.bitcast(word, e_.i8()));
}

Value Codebook::lookup_bytes(const std::vector<uint8_t>& table, Value index, const std::vector<Value>& high) {
  return lookup_part(table, e_.bitcast(index, e_.i8()), high, 0, table.size());
}

/// Depth first, so that few parts are live at once.
Value Codebook::lookup_part(const std::vector<uint8_t>& table, Value index, const std::vector<Value>& high,
                            size_t first, size_t count) {
  constexpr size_t kHalf = 64, kAtOnce = 2 * kHalf;
  const auto bytes = [&](size_t from) { return e_.bytes({table.begin() + from, table.begin() + from + kHalf}); };
  if (count == kAtOnce)
    return e_.lookup128(bytes(first), bytes(first + kHalf), index);
  Value lower = lookup_part(table, index, high, first, count / 2);
  Value upper = lookup_part(table, index, high, first + count / 2, count / 2);
  Value choice = count == 2 * kAtOnce ? index : high[std::countr_zero(count / kAtOnce) - 2];
  return e_.select_negative(e_.bitcast(choice, e_.i8()), upper, lower);
}

} // namespace cortiq::codegen

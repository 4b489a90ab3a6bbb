#pragma once

// What the codecs with one- and two-bit codes share: dword u of a field holds weights 16u + 4s + j at bits 8j + 2s, or
// 32u + 4s + j at bit 8j + s (layout.h), so one shift and one mask give the codes of four neighbours of every row.

#include "codegen/kernels/decoder.h"

namespace cortiq::codegen {

class BitFields : public Decoder {
public:
  using Decoder::Decoder;

protected:
  /// Codes of `step` from a field of `width` bits a code, the lowest code bit moved to bit `at` of its byte.
  Value codes(const Record& record, const formats::LayoutField& field, unsigned v, unsigned step, unsigned width,
              unsigned at = 0) {
    const unsigned steps_a_dword = 8 / width;
    Value word = load_words(record.at, field, step / steps_a_dword, v);
    const unsigned from = width * (step % steps_a_dword);
    if (from > at)
      word = e_.shr_u(word, from - at);
    else if (from < at)
      word = e_.shl(word, at - from);
    return e_.bit_and(e_.bitcast(word, e_.i8()), e_.splat_i8(((1 << width) - 1) << at));
  }
};

} // namespace cortiq::codegen

#pragma once

// The scale ladder of q4tp, shared by the payload's decode and the packed form's: one definition of its rounding.

#include <cmath>
#include <cstdint>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// 2^x of an f16 as the C library's exp2f gives it; glibc's bits are the definition (CMF specification 2.11).
inline float q4tp_exp2(uint16_t half_bits) {
  return ::exp2f(half_to_float(half_bits));
}

/// The 32 scales of a row: rung 0 is `lo`, each next one the product of the one before with `step`, rounded to f32.
struct Q4TPLadder {
  float rung[32];

  Q4TPLadder(float lo, float step) {
    rung[0] = lo;
    for (int c = 1; c < 32; ++c)
      rung[c] = rung[c - 1] * step;
  }
};

} // namespace cortiq::formats

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

/// 2^x as the reference's AVX2 kernels compute it, by a polynomial: up to one ulp off, other values below 2^-126 and
/// from 2^128 on (CMF specification 2.11).
float q4tp_exp2_vector(uint16_t half_bits);

/// How the ladders of q4tp begin; those of q2tp are always exact.
enum class Q4TPReading { kExact, kVector };

/// From here on every q4tp payload of this process is decoded and packed so; kExact before. A program that reads a
/// model says it once, before any weight is touched: what weights are worth is one thing for the whole of a model.
void read_q4tp_as(Q4TPReading reading);

/// 2^x of a row parameter of q4tp, in the reading that is in force.
float q4tp_row_exp2(uint16_t half_bits);

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

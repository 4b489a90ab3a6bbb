// The polynomial that the reference's vector kernels start a ladder with. Products and sums are rounded one by one:
// this file is compiled without contraction to fused multiply-adds.

#include "formats/codec/q4tp_ladder.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cortiq::formats {
namespace {

// (ln 2)^k / k! for k from 9 down to 1, as f32.
constexpr uint32_t kTaylor[] = {0x33da929f, 0x35b16011, 0x377fe5fe, 0x39218489, 0x3aaec3ff,
                                0x3c1d955b, 0x3d635847, 0x3e75fdf0, 0x3f317218};
constexpr uint32_t kBeyondTheLargest = 0x007f8000; // the definition's word for 2^128 and above

// Written before threads start that read it.
Q4TPReading in_force = Q4TPReading::kExact;

} // namespace

void read_q4tp_as(Q4TPReading reading) {
  in_force = reading;
}

float q4tp_row_exp2(uint16_t half_bits) {
  return in_force == Q4TPReading::kVector ? q4tp_exp2_vector(half_bits) : q4tp_exp2(half_bits);
}

float q4tp_exp2_vector(uint16_t half_bits) {
  const float x = half_to_float(half_bits);
  if (std::isnan(x))
    return x;
  if (x < -149)
    return 0;
  const float whole = std::floor(x);
  if (whole > 127)
    return std::bit_cast<float>(kBeyondTheLargest);
  const float rest = x - whole;
  float p = 0;
  for (const uint32_t factor : kTaylor)
    p = p * rest + std::bit_cast<float>(factor);
  p = p * rest + 1;
  const int exponent = std::max(static_cast<int>(whole), -126);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (static_cast<uint32_t>(exponent) << 23));
}

} // namespace cortiq::formats

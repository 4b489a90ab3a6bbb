#include "formats/encode/scale_ladder.h"

#include <cmath>

#include "formats/codec/ladder_planes.h"
#include "formats/encode/cmf_half.h"

namespace cortiq::formats {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;
constexpr int kTerms = 24;
constexpr int kStepTries = 64;

} // namespace

double series_log2(double x) {
  int exponent;
  const double mantissa = 2 * std::frexp(x, &exponent); // within 1 and 2
  const double t = (mantissa - 1) / (mantissa + 1);
  double sum = 0, power = t;
  for (int k = 0; k < kTerms; ++k, power *= t * t)
    sum += power / (2 * k + 1);
  return 2 * sum * kLog2E + (exponent - 1);
}

double series_exp2(double x) {
  const double whole = std::floor(x);
  const double y = (x - whole) * kLn2;
  double sum = 0, term = 1;
  for (int k = 1; k <= kTerms; ++k) {
    sum += term;
    term *= y / k;
  }
  return std::ldexp(sum, static_cast<int>(whole));
}

LadderParameters fit_ladder(double lo, double top, int steps) {
  LadderParameters fit;
  fit.lo = cmf_half(static_cast<float>(lo));
  const double first = half_to_float(fit.lo);
  fit.step = cmf_half(static_cast<float>((top - first) / steps));
  if (fit.step & 0x8000u) // the rounded start may lie above the end
    fit.step = 0;
  for (int i = 0; i < kStepTries; ++i, ++fit.step) {
    const double step = half_to_float(fit.step);
    if (step > 0 && first + steps * step >= top)
      break;
  }
  return fit;
}

void put_rung(uint8_t* codes, uint64_t tile, uint32_t rung) {
  const uint64_t bit = 5 * tile;
  const uint32_t shifted = rung << (bit % 8);
  codes[bit / 8] |= static_cast<uint8_t>(shifted);
  if (shifted > 0xff)
    codes[bit / 8 + 1] |= static_cast<uint8_t>(shifted >> 8);
}

std::array<Plane, 3> ladder_planes(uint64_t rows, uint64_t tiles, uint64_t tile_bytes) {
  return {
      {{0, tile_bytes * tiles}, {rows * tiles * tile_bytes, 4}, {rows * (tiles * tile_bytes + 4), rung_bytes(tiles)}}};
}

} // namespace cortiq::formats

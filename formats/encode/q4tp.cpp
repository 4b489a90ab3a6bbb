// q4tp: the tiles' scales (absolute maximum / 7) set the ends of a row's ladder; each tile then takes the rung near its
// scale that leaves the least squared error.

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/codec/q4tp_ladder.h"
#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/scale_ladder.h"

namespace cortiq::formats {
namespace {

constexpr int kLastRung = 31;
constexpr uint8_t kDeadByte = 0x88; // two codes that decode to 0

float squared_error(std::span<const float, 32> values, float scale) {
  const float inverse = 1 / scale;
  float error = 0;
  for (const float v : values) {
    const float difference = v - nearest(std::clamp(v * inverse, -8.0f, 7.0f)) * scale;
    error += difference * difference;
  }
  return error;
}

int best_rung(std::span<const float, 32> values, const Q4TPLadder& ladder, int nominal) {
  int best = nominal;
  float least = std::numeric_limits<float>::infinity();
  for (int rung = std::max(nominal - 2, 0); rung <= std::min(nominal + 1, kLastRung); ++rung)
    if (const float error = squared_error(values, ladder.rung[rung]); error < least) {
      least = error;
      best = rung;
    }
  return best;
}

void encode_tile(std::span<const float, 32> values, float scale, uint8_t* nibbles) {
  const float inverse = 1 / scale;
  for (int k = 0; k < 16; ++k) {
    const int low = quantize(values[2 * k] * inverse, -8, 7) + 8;
    const int high = quantize(values[2 * k + 1] * inverse, -8, 7) + 8;
    nibbles[k] = static_cast<uint8_t>(low | high << 4);
  }
}

void encode_row(std::span<const float> values, uint8_t* nibbles, uint8_t* parameters, uint8_t* codes) {
  const uint64_t tiles = values.size() / 32;
  const auto tile = [&](uint64_t t) { return std::span<const float, 32>(values.data() + 32 * t, 32); };
  std::vector<double> log(tiles);
  std::vector<bool> live(tiles);
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (uint64_t t = 0; t < tiles; ++t) {
    const float largest = absmax(tile(t));
    live[t] = largest > 0;
    log[t] = series_log2(f16_scale(largest / 7));
    if (live[t]) {
      lo = std::min(lo, log[t]);
      hi = std::max(hi, log[t]);
    }
  }
  if (lo > hi)
    lo = hi = log[0];
  const LadderParameters fit = fit_ladder(lo, hi, kLastRung);
  store_u16(parameters, fit.lo);
  store_u16(parameters + 2, fit.step);
  const Q4TPLadder ladder(q4tp_exp2(fit.lo), q4tp_exp2(fit.step));
  const double first = half_to_float(fit.lo), step = half_to_float(fit.step);
  for (uint64_t t = 0; t < tiles; ++t) {
    if (!live[t]) {
      std::fill_n(nibbles + 16 * t, 16, kDeadByte);
      continue;
    }
    const int nominal =
        static_cast<int>(std::clamp(std::nearbyint((log[t] - first) / step), 0.0, static_cast<double>(kLastRung)));
    const int rung = best_rung(tile(t), ladder, nominal);
    encode_tile(tile(t), ladder.rung[rung], nibbles + 16 * t);
    put_rung(codes, t, static_cast<uint32_t>(rung));
  }
}

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), tiles = source.cols() / 32;
  const auto planes = ladder_planes(rows, tiles, 16);
  return write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    encode_row(source.row(row), out[0], out[1], out[2]);
  });
}

} // namespace

constinit const Encoder kQ4TPEncoder = {CodecId::kQ4TP, encode};

} // namespace cortiq::formats

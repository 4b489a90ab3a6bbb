// q2tp, second rule of the specification: every tile's best scale among 31 fractions of its absolute maximum sets the
// ends of the row's ladder; of four ladder tops the one with the least error stays. At last the row is scaled so that
// its product with the original is right.

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/codec/q4tp_ladder.h"
#include "formats/encode/cmf_half.h"
#include "formats/encode/encoder_rows.h"
#include "formats/encode/scale_ladder.h"

namespace cortiq::formats {
namespace {

constexpr int kRungs = 31; // rungs 1 to 31; rung 0 is zero
constexpr int kFractions = 31;
constexpr double kTops[] = {1.0, 0.9, 0.8, 0.7};

using Tile = std::span<const float, 32>;

float level(float value, float inverse) {
  return nearest(std::clamp(value * inverse + 1.5f, 0.0f, 3.0f)) - 1.5f;
}

float squared_error(Tile values, float scale) {
  const float inverse = 1 / scale;
  float error = 0;
  for (const float v : values) {
    const float difference = v - level(v, inverse) * scale;
    error += difference * difference;
  }
  return error;
}

float best_scale(Tile values) {
  const float largest = absmax(values);
  float best = largest / 1.5f, least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < kFractions; ++i) {
    const float scale = (0.3f + 0.025f * static_cast<float>(i)) * largest / 1.5f;
    if (const float error = squared_error(values, scale); error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

/// One ladder and what each tile makes of it; rung 0 for dead tiles.
struct RowFit {
  LadderParameters parameters;
  std::vector<uint8_t> rungs;
  double error = std::numeric_limits<double>::infinity();
};

class RowEncoder {
public:
  explicit RowEncoder(std::span<const float> values) : values_(values), tiles_(values.size() / 32) {}

  void encode(uint8_t* codes, uint8_t* parameters, uint8_t* rungs) {
    RowFit best = search();
    const Q4TPLadder ladder = ladder_of(best.parameters);
    double product = 0, square = 0;
    for (uint64_t t = 0; t < tiles_; ++t) {
      if (best.rungs[t] == 0)
        continue;
      const float scale = ladder.rung[best.rungs[t] - 1], inverse = 1 / scale;
      for (int i = 0; i < 32; ++i) {
        const float v = tile(t)[i], l = level(v, inverse);
        codes[8 * t + i / 4] |= static_cast<uint8_t>(static_cast<int>(l + 1.5f) << (i % 4 * 2));
        product += static_cast<double>(v) * (l * scale);
        square += static_cast<double>(v) * v;
      }
      put_rung(rungs, t, best.rungs[t]);
    }
    if (square > 0) {
      const double shift = series_log2(std::clamp(product / square, 0.8, 1.25));
      best.parameters.lo = cmf_half(static_cast<float>(half_to_float(best.parameters.lo) - shift));
    }
    store_u16(parameters, best.parameters.lo);
    store_u16(parameters + 2, best.parameters.step);
  }

private:
  Tile tile(uint64_t t) const { return Tile(values_.data() + 32 * t, 32); }

  static Q4TPLadder ladder_of(const LadderParameters& parameters) {
    return {q4tp_exp2(parameters.lo), q4tp_exp2(parameters.step)};
  }

  RowFit search() const {
    std::vector<bool> live(tiles_);
    double lo = std::numeric_limits<double>::infinity(), hi = -lo;
    for (uint64_t t = 0; t < tiles_; ++t) {
      live[t] = absmax(tile(t)) > 0;
      if (!live[t])
        continue;
      const double log = series_log2(std::max(best_scale(tile(t)), std::numeric_limits<float>::min()));
      lo = std::min(lo, log);
      hi = std::max(hi, log);
    }
    RowFit best;
    if (lo > hi) { // nothing but zeros
      best.parameters = fit_ladder(0, 0, kRungs - 1);
      best.rungs.assign(tiles_, 0);
      return best;
    }
    for (const double top : kTops) {
      RowFit fit = fit_row(fit_ladder(lo, lo + (hi - lo) * top, kRungs - 1), live);
      if (fit.error < best.error)
        best = std::move(fit);
    }
    return best;
  }

  RowFit fit_row(const LadderParameters& parameters, const std::vector<bool>& live) const {
    RowFit fit{parameters, std::vector<uint8_t>(tiles_), 0};
    const Q4TPLadder ladder = ladder_of(parameters);
    for (uint64_t t = 0; t < tiles_; ++t) {
      if (!live[t])
        continue;
      float least = std::numeric_limits<float>::infinity();
      for (int rung = 1; rung <= kRungs; ++rung)
        if (const float error = squared_error(tile(t), ladder.rung[rung - 1]); error < least) {
          least = error;
          fit.rungs[t] = static_cast<uint8_t>(rung);
        }
      fit.error += least;
    }
    return fit;
  }

  std::span<const float> values_;
  uint64_t tiles_;
};

Status encode(const RowSource& source, PayloadSink& sink, const EncodeOptions& options) {
  const uint64_t rows = source.rows(), tiles = source.cols() / 32;
  const auto planes = ladder_planes(rows, tiles, 8);
  return write_planes(sink, rows, planes, options.threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    const std::vector<float> values = source.row(row);
    RowEncoder(values).encode(out[0], out[1], out[2]);
  });
}

} // namespace

constinit const Encoder kQ2TPEncoder = {CodecId::kQ2TP, encode};

} // namespace cortiq::formats

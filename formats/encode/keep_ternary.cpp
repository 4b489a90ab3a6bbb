// Ternary schemes of GGUF: levels -1, 0 and 1, and 2 where two bits hold a level, times one f16 scale a block.
// As long as they are ternary they become q1t without overlay, the block's scale in each of its tiles. Level 2 has no
// code there, neither has the -0 or NaN that a negative or infinite scale makes of level 0; such matrices become
// vbit_ro with 3 bits, which multiplies as the source does.

#include <algorithm>
#include <bit>
#include <vector>

#include "formats/encode/keeper_rows.h"
#include "formats/encode/q1t_tile.h"
#include "formats/encode/row_planes.h"
#include "formats/encode/vbit_keeper.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kMostCols = 65536; // the limit of q1t
constexpr uint16_t kHalfOne = 0x3C00;
constexpr uint16_t kHalfInfinity = 0x7C00; // from here on infinities, NaNs and, by the sign bit, negative numbers

/// A scheme's blocks: how many weights and bytes, and where the scale stands.
template <CodecId kId, int kBlockWeights, int kBlockBytes, int kScale>
struct Scheme {
  static constexpr CodecId kFrom = kId;
  static constexpr int kWeights = kBlockWeights, kBytes = kBlockBytes, kScaleAt = kScale;

  static uint16_t scale(const uint8_t* block) { return load_u16(block + kScaleAt); }

  /// What the block decodes to with a scale of 1.
  static void levels(const uint8_t* block, int* out) {
    uint8_t unit[kBytes];
    std::copy_n(block, kBytes, unit);
    store_u16(unit + kScaleAt, kHalfOne);
    float values[kWeights];
    codec_info(kFrom).decode_row(unit, 1, kWeights, 0, values);
    std::transform(values, values + kWeights, out, [](float v) { return static_cast<int>(v); });
  }
};

using TQ10 = Scheme<CodecId::kTQ1_0, 256, 54, 52>;
using TQ20 = Scheme<CodecId::kTQ2_0, 256, 66, 64>;
using Q20 = Scheme<CodecId::kQ2_0, 64, 18, 0>;
using Q20G128 = Scheme<CodecId::kQ2_0_G128, 128, 34, 0>;
using PTQ10 = Scheme<CodecId::kPTQ1_0, 128, 28, 26>;
using STQ10 = Scheme<CodecId::kSTQ1_0, 256, 42, 40>;

template <class S>
bool is_ternary(const uint8_t* row, uint64_t cols) {
  if (cols > kMostCols)
    return false;
  for (uint64_t at = 0; at < cols; at += S::kWeights, row += S::kBytes) {
    int levels[S::kWeights];
    S::levels(row, levels);
    const bool plain_scale = S::scale(row) < kHalfInfinity;
    for (const int level : levels)
      if (level > 1 || (level == 0 && !plain_scale))
        return false;
  }
  return true;
}

template <class S>
Status write_tiles(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  const uint64_t tiles = rows.cols() / 32;
  const Plane planes[] = {{0, 9 * tiles}};
  CORTIQ_RETURN_IF_ERROR(
      write_planes(sink, rows.rows(), planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
        std::vector<uint8_t> scratch;
        const uint8_t* block = rows.bytes(row, scratch);
        uint8_t* tile = out[0];
        for (uint64_t at = 0; at < rows.cols(); at += S::kWeights, block += S::kBytes) {
          int levels[S::kWeights];
          S::levels(block, levels);
          for (int from = 0; from < S::kWeights; from += 32, tile += 9) {
            int digits[35] = {};
            for (int i = 0; i < 32; ++i)
              digits[i] = levels[from + i] < 0 ? 2 : levels[from + i];
            store_q1t_tile(tile, S::scale(block), digits);
          }
        }
      }));
  return write_empty_q1t_overlay(sink, rows.rows(), tiles);
}

template <class S>
constexpr Keeper ternary() {
  return {S::kFrom, CodecId::kQ1T, is_ternary<S>, write_tiles<S>};
}

template <class S>
constexpr Keeper levels() {
  return {S::kFrom, CodecId::kVBitRO, nullptr, write_vbit<S, 3>};
}

} // namespace

constinit const Keeper kTQ10TernaryKeeper = ternary<TQ10>();
constinit const Keeper kTQ10LevelsKeeper = levels<TQ10>();
constinit const Keeper kTQ20TernaryKeeper = ternary<TQ20>();
constinit const Keeper kTQ20LevelsKeeper = levels<TQ20>();
constinit const Keeper kQ20TernaryKeeper = ternary<Q20>();
constinit const Keeper kQ20LevelsKeeper = levels<Q20>();
constinit const Keeper kQ20G128TernaryKeeper = ternary<Q20G128>();
constinit const Keeper kQ20G128LevelsKeeper = levels<Q20G128>();
constinit const Keeper kPTQ10TernaryKeeper = ternary<PTQ10>();
constinit const Keeper kPTQ10LevelsKeeper = levels<PTQ10>();
constinit const Keeper kSTQ10TernaryKeeper = ternary<STQ10>();
constinit const Keeper kSTQ10LevelsKeeper = levels<STQ10>();

} // namespace cortiq::formats

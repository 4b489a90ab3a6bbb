// TQ1_0 and TQ2_0 to q1t without overlay: a block's scale goes to each of its eight tiles. Level 2, which two bits hold
// and quantizers never write, has no code there; neither has the -0 that a negative scale makes of level 0.

#include <bit>
#include <vector>

#include "formats/encode/keeper_rows.h"
#include "formats/encode/q1t_tile.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kBlock = 256;
constexpr uint64_t kMostCols = 65536; // the limit of q1t

/// The scale's place in a block: the last two bytes.
uint16_t block_scale(const uint8_t* row, const Codec& codec, uint64_t block) {
  return load_u16(row + (block + 1) * codec.block_bytes - 2);
}

template <CodecId kFrom>
bool holds(const uint8_t* row, uint64_t cols) {
  if (cols > kMostCols)
    return false;
  const Codec& codec = codec_info(kFrom);
  std::vector<float> values(cols);
  codec.decode_row(row, 1, cols, 0, values.data());
  for (uint64_t i = 0; i < cols; ++i) {
    const float scale = half_to_float(block_scale(row, codec, i / kBlock));
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    if (bits != 0 && bits != std::bit_cast<uint32_t>(scale) && bits != std::bit_cast<uint32_t>(-scale))
      return false;
  }
  return true;
}

template <CodecId kFrom>
Status write(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  const Codec& codec = codec_info(kFrom);
  const uint64_t cols = rows.cols(), tiles = cols / 32;
  const Plane planes[] = {{0, 9 * tiles}};
  CORTIQ_RETURN_IF_ERROR(
      write_planes(sink, rows.rows(), planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
        std::vector<float> values(cols);
        codec.decode_row(rows.bytes(row), 1, cols, 0, values.data());
        for (uint64_t t = 0; t < tiles; ++t) {
          const uint16_t scale = block_scale(rows.bytes(row), codec, t * 32 / kBlock);
          int digits[35] = {};
          for (int i = 0; i < 32; ++i)
            if (const uint32_t bits = std::bit_cast<uint32_t>(values[32 * t + i]); bits != 0)
              digits[i] = bits == std::bit_cast<uint32_t>(half_to_float(scale)) ? 1 : 2;
          store_q1t_tile(out[0] + 9 * t, scale, digits);
        }
      }));
  return write_empty_q1t_overlay(sink, rows.rows(), tiles);
}

} // namespace

constinit const Keeper kTQ10Keeper = {CodecId::kTQ1_0, CodecId::kQ1T, holds<CodecId::kTQ1_0>, write<CodecId::kTQ1_0>};
constinit const Keeper kTQ20Keeper = {CodecId::kTQ2_0, CodecId::kQ1T, holds<CodecId::kTQ2_0>, write<CodecId::kTQ2_0>};

} // namespace cortiq::formats

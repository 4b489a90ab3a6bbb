#pragma once

// Integer codecs with one f16 scale for 32 weights or a multiple, kept as vbit_ro with the same width in every row.

#include <cstring>
#include <string>
#include <vector>

#include "formats/codec/half.h"
#include "formats/encode/bit_stream.h"
#include "formats/encode/keep.h"
#include "formats/encode/row_planes.h"

namespace cortiq::formats {

/// `Block::levels(block, out)` gives the Block::kWeights integer levels of a block of Block::kBytes bytes, whose scale
/// stands at Block::kScaleAt; each lies within what kWidth bits hold: -(2^(kWidth - 1) - 1) to 2^(kWidth - 1).
template <class Block, int kWidth>
Status write_vbit(const ByteRows& rows, PayloadSink& sink, unsigned threads) {
  constexpr int kLevel = (1 << (kWidth - 1)) - 1;
  const uint64_t count = rows.rows(), blocks = rows.cols() / 32, stream_bytes = rows.cols() / 8 * kWidth;
  const uint64_t table_at = count * (1 + 2 * blocks), streams_at = table_at + 4 * (count + 1);
  if (count * stream_bytes > UINT32_MAX)
    return invalid("has codes of " + std::to_string(count * stream_bytes) +
                   " bytes, more than vbit_ro's 32-bit row offsets reach; give --quant another codec");
  std::vector<uint8_t> table(4 * (count + 1));
  for (uint64_t row = 0; row <= count; ++row)
    store_u32(table.data() + 4 * row, static_cast<uint32_t>(row * stream_bytes));
  CORTIQ_RETURN_IF_ERROR(sink.write_at(0, std::vector<uint8_t>(count, kWidth)));
  CORTIQ_RETURN_IF_ERROR(sink.write_at(table_at, table));
  const Plane planes[] = {{count, 2 * blocks}, {streams_at, stream_bytes}};
  return write_planes(sink, count, planes, threads, [&](uint64_t row, std::span<uint8_t* const> out) {
    std::vector<uint8_t> scratch;
    const uint8_t* block = rows.bytes(row, scratch);
    BitStream stream(out[1]);
    for (uint64_t b = 0; b < blocks; b += Block::kWeights / 32, block += Block::kBytes) {
      for (uint64_t g = b; g < b + Block::kWeights / 32; ++g)
        std::memcpy(out[0] + 2 * g, block + Block::kScaleAt, 2);
      int levels[Block::kWeights];
      Block::levels(block, levels);
      for (const int level : levels)
        stream.put(static_cast<uint32_t>(level + kLevel), kWidth);
    }
  });
}

} // namespace cortiq::formats

#include "tools/cortiq-bench/synthetic/low_rank.h"

#include <algorithm>
#include <cmath>

#include "formats/codec/codec.h"
#include "formats/codec/half.h"
#include "formats/layout/random_stream.h"
#include "formats/layout/record_form.h"

namespace cortiq::bench {
namespace {

constexpr uint64_t kHeaderBytes = 16, kPaths = 2, kScaleBytes = 2, kScaleBits = 16;

/// The rank of a matrix of one bit a weight: a path has that many signs a row and a column, and three kinds of scales.
uint64_t rank_of(uint64_t rows, uint64_t cols) {
  const uint64_t sides = rows + cols, scales = kScaleBits * kPaths * sides, bits = rows * cols;
  const uint64_t rank = bits > scales ? (bits - scales) / (kPaths * (sides + kScaleBits)) : 0;
  return std::clamp<uint64_t>(rank / 8 * 8, 8, std::max<uint64_t>(8, std::min(rows, cols) / 8 * 8));
}

uint64_t path_bytes(uint64_t rank, uint64_t rows, uint64_t cols) {
  return kScaleBytes * (rows + cols + rank) + rows * (rank / 8) + rank * (cols / 8);
}

} // namespace

StatusOr<uint64_t> low_rank_bytes(uint64_t rows, uint64_t cols) {
  const formats::Codec& codec = formats::codec_info(formats::CodecId::kBLR);
  CORTIQ_RETURN_IF_ERROR(codec.payload_bytes(codec, rows, cols).status());
  return kHeaderBytes + kPaths * path_bytes(rank_of(rows, cols), rows, cols);
}

std::vector<uint8_t> low_rank_payload(uint64_t rows, uint64_t cols, uint64_t seed) {
  const uint64_t rank = rank_of(rows, cols), path = path_bytes(rank, rows, cols);
  std::vector<uint8_t> out(kHeaderBytes + kPaths * path);
  out[0] = 0x4C;
  out[1] = 1;
  out[2] = kPaths;
  formats::store_u32(&out[4], static_cast<uint32_t>(rank));
  formats::store_u32(&out[8], static_cast<uint32_t>(rows));
  formats::store_u32(&out[12], static_cast<uint32_t>(cols));
  // The sum over all ranks and paths deviates as other codecs' random weights do.
  const formats::HalfRange row_scales = formats::scales_around(formats::kFillDeviation),
                           column_scales = formats::scales_around(1.0f);
  const uint16_t level = formats::float_to_half(1.0f / std::sqrt(static_cast<float>(kPaths * rank)));
  for (uint64_t p = 0; p < kPaths; ++p) {
    formats::RandomStream random(seed, p);
    uint8_t* at = out.data() + kHeaderBytes + p * path;
    for (uint64_t i = 0; i < rows; ++i, at += kScaleBytes)
      formats::store_u16(at, random.half_in(row_scales));
    for (uint64_t i = 0; i < cols; ++i, at += kScaleBytes)
      formats::store_u16(at, random.half_in(column_scales));
    for (uint64_t i = 0; i < rank; ++i, at += kScaleBytes)
      formats::store_u16(at, level);
    random.bytes(at, rows * (rank / 8) + rank * (cols / 8));
  }
  return out;
}

} // namespace cortiq::bench

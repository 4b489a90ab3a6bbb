#include "formats/codec/low_rank.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "formats/codec/half.h"

namespace cortiq::formats {
namespace {

/// A blr payload of random signs and of scales between 1/32 and 1/8 of either sign.
std::vector<uint8_t> random_low_rank(const LowRankShape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> payload(kLowRankHeaderBytes);
  payload[0] = 0x4C;
  payload[1] = 1;
  payload[2] = static_cast<uint8_t>(shape.paths);
  store_u32(&payload[4], static_cast<uint32_t>(shape.rank));
  store_u32(&payload[8], static_cast<uint32_t>(shape.rows));
  store_u32(&payload[12], static_cast<uint32_t>(shape.cols));
  for (uint64_t p = 0; p < shape.paths; ++p) {
    for (uint64_t i = 0; i < shape.rows + shape.cols + shape.rank; ++i) {
      payload.resize(payload.size() + 2);
      store_u16(&payload[payload.size() - 2],
                static_cast<uint16_t>(0x2800 + (random() & 0x7ff) + (random() & 1 ? 0x8000 : 0)));
    }
    for (uint64_t i = 0; i < (shape.rows * shape.rank + shape.rank * shape.cols) / 8; ++i)
      payload.push_back(static_cast<uint8_t>(random()));
  }
  return payload;
}

std::vector<float> decoded(const Codec& codec, const std::vector<uint8_t>& payload, uint64_t rows, uint64_t cols) {
  std::vector<float> out(rows * cols);
  for (uint64_t r = 0; r < rows; ++r)
    codec.decode_row(payload.data(), rows, cols, r, &out[r * cols]);
  return out;
}

TEST(LowRank, FactorsMultiplyToTheWholeMatrix) {
  for (const LowRankShape& shape : {LowRankShape{1, 8, 8, 16}, LowRankShape{2, 24, 33, 40}}) {
    const std::vector<uint8_t> payload = random_low_rank(shape, static_cast<uint32_t>(shape.rank));
    const StatusOr<LowRankShape> read = read_low_rank(payload);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->paths, shape.paths);
    EXPECT_EQ(read->rank, shape.rank);
    EXPECT_EQ(read->rows, shape.rows);
    EXPECT_EQ(read->cols, shape.cols);
    std::vector<double> product(shape.rows * shape.cols), magnitude(shape.rows * shape.cols);
    for (uint64_t p = 0; p < shape.paths; ++p) {
      const Codec& codec_u = codec_info(CodecId::kBLRU);
      const Codec& codec_v = codec_info(CodecId::kBLRV);
      const auto u_bytes = low_rank_factor(payload, CodecId::kBLRU, p);
      const auto v_bytes = low_rank_factor(payload, CodecId::kBLRV, p);
      ASSERT_TRUE(u_bytes.ok() && v_bytes.ok());
      ASSERT_TRUE(check_payload(codec_u, *u_bytes, shape.rows, shape.rank, true).ok());
      ASSERT_TRUE(check_payload(codec_v, *v_bytes, shape.rank, shape.cols, true).ok());
      const std::vector<float> u = decoded(codec_u, *u_bytes, shape.rows, shape.rank);
      const std::vector<float> v = decoded(codec_v, *v_bytes, shape.rank, shape.cols);
      for (uint64_t i = 0; i < shape.rows; ++i)
        for (uint64_t k = 0; k < shape.rank; ++k)
          for (uint64_t j = 0; j < shape.cols; ++j) {
            const double term = static_cast<double>(u[i * shape.rank + k]) * v[k * shape.cols + j];
            product[i * shape.cols + j] += term;
            magnitude[i * shape.cols + j] += std::fabs(term);
          }
    }
    // The decode of the whole adds its terms in f32.
    constexpr double kRoundings = 1e-6;
    const std::vector<float> whole = decoded(codec_info(CodecId::kBLR), payload, shape.rows, shape.cols);
    for (size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(whole[i], product[i], kRoundings * magnitude[i]) << "weight " << i;
  }
}

TEST(LowRank, RefusesWhatIsNoSoundPayload) {
  const std::vector<uint8_t> payload = random_low_rank({1, 8, 8, 16}, 1);
  EXPECT_FALSE(low_rank_factor(payload, CodecId::kBLRU, 1).ok());
  EXPECT_FALSE(read_low_rank(std::span(payload).first(15)).ok());
  EXPECT_FALSE(read_low_rank(std::span(payload).first(payload.size() - 1)).ok());
  std::vector<uint8_t> damaged = payload;
  damaged[4] = 16; // a rank above the rows
  EXPECT_FALSE(low_rank_factor(damaged, CodecId::kBLRV, 0).ok());
}

} // namespace
} // namespace cortiq::formats

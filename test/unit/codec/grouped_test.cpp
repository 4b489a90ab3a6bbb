// A stack of experts as floats, transposed.

#include "formats/codec/grouped.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace cortiq::formats {
namespace {

/// Any bytes are a valid payload of these.
std::vector<uint8_t> random_payload(const Codec& codec, uint64_t rows, uint64_t cols) {
  std::vector<uint8_t> payload(*codec.payload_bytes(codec, rows, cols));
  std::mt19937 random(5);
  for (uint8_t& byte : payload)
    byte = uint8_t(random() & 0x3b); // no f16 of them is infinite
  return payload;
}

TEST(GroupedTest, EveryWeightStandsAtItsTransposedPlace) {
  for (const char* name : {"q4_k", "q8_0", "iq2_xxs", "mxfp4_ggml", "q4_0"})
    for (uint64_t n : {1u, 16u, 37u}) {
      const Codec& codec = *find_codec(name);
      const GroupedShape shape{3, n, 512};
      const std::vector<uint8_t> payload = random_payload(codec, shape.experts * n, shape.k);
      std::vector<float> grouped(shape.experts * n * shape.k), row(shape.k);
      ASSERT_TRUE(decode_grouped(codec, payload, shape, grouped).ok());
      for (uint64_t e = 0; e < shape.experts; ++e)
        for (uint64_t r = 0; r < n; ++r) {
          codec.decode_row(payload.data(), shape.experts * n, shape.k, e * n + r, row.data());
          for (uint64_t c = 0; c < shape.k; ++c)
            ASSERT_EQ(0, std::memcmp(&grouped[(e * shape.k + c) * n + r], &row[c], 4))
                << name << " expert " << e << " row " << r << " column " << c;
        }
    }
}

TEST(GroupedTest, SizesThatDoNotMatchAreRefused) {
  const Codec& codec = *find_codec("q4_k");
  std::vector<uint8_t> payload = random_payload(codec, 6, 256);
  std::vector<float> out(6 * 256);
  EXPECT_TRUE(decode_grouped(codec, payload, {2, 3, 256}, out).ok());
  EXPECT_FALSE(decode_grouped(codec, payload, {2, 4, 256}, out).ok());
  EXPECT_FALSE(decode_grouped(codec, payload, {0, 3, 256}, out).ok());
  EXPECT_FALSE(decode_grouped(codec, payload, {2, 3, 255}, out).ok());
  EXPECT_FALSE(decode_grouped(codec, payload, {uint64_t{1} << 40, uint64_t{1} << 40, 256}, out).ok());
  EXPECT_FALSE(decode_grouped(codec, payload, {2, 3, 256}, std::span(out).first(100)).ok());
  payload.pop_back();
  EXPECT_FALSE(decode_grouped(codec, payload, {2, 3, 256}, out).ok());
}

} // namespace
} // namespace cortiq::formats

// The test vectors of CMF specification appendix A whose payload is the plain filler.

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "formats/cmf/hash64.h"
#include "formats/codec/codec.h"

namespace cortiq::formats {
namespace {

struct Vector {
  int code;
  uint64_t cols;
  size_t size;
  uint64_t payload_hash;
  uint64_t decoded_hash;
  uint32_t first[4];
};

// Two rows each.
constexpr Vector kVectors[] = {
    {1, 64, 256, 0x588333e7aa8a0617, 0xeeee21b957f92ccb, {0x39406000, 0x3b022000, 0x3cc3e000, 0x3e85a000}},
    {2, 64, 256, 0x588333e7aa8a0617, 0x39df0e54e377af5e, {0x0a030000, 0x18110000, 0x261f0000, 0x342d0000}},
    {3, 64, 132, 0xddd384b7a1144933, 0x979ecb053044cfa2, {0xba1c4800, 0xbb023c00, 0xbb5d6600, 0xbb9c4800}},
    {4, 64, 72, 0x1c1e8809950d9ffb, 0xa315f7e364fbb498, {0x3a823c00, 0x3ad06000, 0xb9d06000, 0x3ad06000}},
    {11, 64, 72, 0x1c1e8809950d9ffb, 0x99c55a1bcb30895f, {0xbaa85400, 0xbaa85400, 0x00000000, 0xbaa85400}},
    {9, 64, 260, 0x1f5f5466c9e21ab1, 0x2e5da1b1dd85642e, {0x37815817, 0x3a183ca3, 0x34172160, 0x363130a2}},
    {15, 64, 76, 0xc47d8720e014ba66, 0x952b5b7f53364077, {0xc0997092, 0xc0f580e9, 0x3ff580e9, 0xc0f580e9}},
    {12, 64, 24, 0x34024a94be3be31e, 0xc5fd9925b01e1023, {0x39406000, 0xb9406000, 0xb9406000, 0xb9406000}},
    {16, 64, 44, 0x6d487653ed7c4eb1, 0x15123c1973793bd7, {0x381c11bc, 0xb81c11bc, 0xb81c11bc, 0xb81c11bc}},
    {20, 128, 36, 0x4cd3d86edaae6342, 0xa543828a2e0541eb, {0xbd546000, 0xbd546000, 0x3d546000, 0x3d546000}},
    {21, 64, 68, 0x471fd68e0dfbc642, 0x4b97fcb2cf6326c4, {0x41c00000, 0x00000000, 0xc1800000, 0x00000000}},
};

TEST(AppendixVectors, PayloadAndDecodeHash) {
  for (const Vector& vector : kVectors) {
    std::vector<uint8_t> payload(vector.size);
    for (size_t i = 0; i < payload.size(); ++i)
      payload[i] = static_cast<uint8_t>((7 * i + 3) & 0xBF);
    EXPECT_EQ(hash64(payload), vector.payload_hash) << vector.code;
    const Codec* codec = find_cmf_codec(vector.code);
    ASSERT_NE(codec, nullptr) << vector.code;
    std::vector<float> out(2 * vector.cols);
    for (uint64_t row = 0; row < 2; ++row)
      codec->decode_row(payload.data(), 2, vector.cols, row, out.data() + vector.cols * row);
    EXPECT_EQ(std::memcmp(out.data(), vector.first, sizeof vector.first), 0) << vector.code;
    EXPECT_EQ(hash64({reinterpret_cast<const uint8_t*>(out.data()), 4 * out.size()}), vector.decoded_hash)
        << vector.code;
  }
}

} // namespace
} // namespace cortiq::formats

// Lossless changes of container: on the golden payloads of GGUF, special values included, what is kept decodes to the
// same bits, and what cannot be kept is told before.

#include <cstring>
#include <gtest/gtest.h>
#include <map>

#include "formats/encode/keep.h"
#include "test/unit/codec/golden.h"
#include "test/unit/encode/samples.h"

namespace cortiq::formats {
namespace {

class Payload : public ByteRows {
public:
  Payload(const Codec& codec, std::span<const uint8_t> bytes, uint64_t rows, uint64_t cols)
      : bytes_(bytes), rows_(rows), cols_(cols), row_bytes_(bytes.size() / rows) {}
  uint64_t rows() const override { return rows_; }
  uint64_t cols() const override { return cols_; }
  const uint8_t* bytes(uint64_t row, std::vector<uint8_t>& /*scratch*/) const override {
    return bytes_.data() + row * row_bytes_;
  }

private:
  std::span<const uint8_t> bytes_;
  uint64_t rows_, cols_, row_bytes_;
};

bool holds(const Keeper& keeper, const Payload& payload) {
  for (uint64_t row = 0; keeper.holds && row < payload.rows(); ++row)
    if (std::vector<uint8_t> scratch; !keeper.holds(payload.bytes(row, scratch), payload.cols()))
      return false;
  return true;
}

const Keeper* find_keeper(CodecId from, CodecId to) {
  for (const Keeper* keeper : keeper_table())
    if (keeper->from == from && keeper->to == to)
      return keeper;
  return nullptr;
}

/// Bits, but any NaN for a NaN: which one a product of NaN gives is the machine's choice.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])))
      return false;
  return a.size() == b.size();
}

TEST(Keep, GoldenPayloadsDecodeToTheSameBits) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  std::map<const Keeper*, int> kept;
  for (const auto& c : golden.manifest["cases"]) {
    const Codec* codec = c["family"] == "gguf" ? find_gguf_scheme(c["scheme"].get<std::string>()) : nullptr;
    for (const Keeper* keeper : keeper_table()) {
      if (!codec || keeper->from != codec->id)
        continue;
      const uint64_t rows = c["rows"], cols = c["cols"];
      const std::vector<uint8_t> bytes = golden.bytes(c["files"]["packed"]["file"]);
      const Payload payload(*codec, bytes, rows, cols);
      MemorySink sink;
      const Status status = keeper->write(payload, sink, 2);
      ASSERT_TRUE(status.ok()) << c["name"] << " " << status.message();
      const Codec& to = codec_info(keeper->to);
      const std::vector<uint8_t> out = sink.take();
      const Status checked = check_payload(to, out, rows, cols, /*strict=*/true);
      ASSERT_TRUE(checked.ok()) << c["name"] << " " << checked.message();
      if (!holds(*keeper, payload))
        continue;
      EXPECT_TRUE(same(decode(*codec, bytes, rows, cols), decode(to, out, rows, cols))) << c["name"] << " " << to.name;
      ++kept[keeper];
    }
  }
  for (const Keeper* keeper : keeper_table())
    if (codec_info(keeper->from).block > 1)
      EXPECT_GT(kept[keeper], 0) << codec_info(keeper->from).name << " to " << codec_info(keeper->to).name;
}

TEST(Keep, WhatHasNoCodeIsTold) {
  std::vector<uint8_t> q8(34, 1);
  const Keeper* keeper = find_keeper(CodecId::kQ8_0, CodecId::kVBitRO);
  EXPECT_TRUE(keeper->holds(q8.data(), 32));
  q8[20] = 0x80;
  EXPECT_FALSE(keeper->holds(q8.data(), 32));

  std::vector<uint8_t> mxfp4(17, 0x21);
  keeper = find_keeper(CodecId::kMXFP4_GGML, CodecId::kMXFP4);
  EXPECT_TRUE(keeper->holds(mxfp4.data(), 32));
  mxfp4[0] = 255;
  EXPECT_FALSE(keeper->holds(mxfp4.data(), 32));

  std::vector<uint8_t> tq2(66, 0x55);
  tq2[64] = 0;
  tq2[65] = 0x3c;
  keeper = find_keeper(CodecId::kTQ2_0, CodecId::kQ1T);
  EXPECT_TRUE(keeper->holds(tq2.data(), 256));
  tq2[7] = 0xd5; // a level of 2
  EXPECT_FALSE(keeper->holds(tq2.data(), 256));
  tq2[7] = 0x55;
  tq2[65] = 0xbc; // 0 times a negative scale is -0
  EXPECT_FALSE(keeper->holds(tq2.data(), 256));
}

} // namespace
} // namespace cortiq::formats

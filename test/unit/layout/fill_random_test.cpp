#include <cmath>

#include "test/unit/layout/tensors.h"

namespace cortiq::formats {
namespace {

std::vector<uint8_t> filled(const Codec& codec, LayoutId layout, uint64_t rows, uint64_t cols, uint64_t seed) {
  const StatusOr<uint64_t> size = packed_bytes(codec, layout, rows, cols);
  EXPECT_TRUE(size.ok()) << size.status().message();
  std::vector<uint8_t> out(size.ok() ? *size : 0, 0xa5);
  const Status status = fill_random(codec, layout, rows, cols, seed, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

uint64_t fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

TEST(FillRandom, WeightsAreFiniteWithADeviationNearTwoHundredths) {
  constexpr uint64_t kRows = 96, kCols = 1024;
  for (const Codec* codec : weight_codecs()) {
    const LayoutId layout = r16_format(*codec, kCols).ok() ? LayoutId::kR16 : LayoutId::kVerbatim;
    const std::vector<uint8_t> bytes = filled(*codec, layout, kRows, kCols, 42);
    ASSERT_TRUE(check_packed(*codec, layout, bytes, kRows, kCols).ok()) << codec->name;
    double sum = 0, squares = 0;
    std::vector<float> row(kCols);
    for (uint64_t r = 0; r < kRows; ++r) {
      ASSERT_TRUE(decode_packed_row(*codec, layout, bytes, kRows, kCols, r, row.data()).ok());
      for (const float w : row) {
        ASSERT_TRUE(std::isfinite(w)) << codec->name;
        sum += w;
        squares += static_cast<double>(w) * w;
      }
    }
    const double n = kRows * kCols;
    const double mean = sum / n;
    EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 0.02, 0.001) << codec->name;
    EXPECT_NEAR(mean, 0.0, 0.004) << codec->name;
  }
}

TEST(FillRandom, GivesTheSameWeightsInEveryLayout) {
  for (const Codec* codec : row_group_codecs()) {
    const uint64_t rows = 19, cols = codec->block == 1 ? 37 : 3 * codec->block;
    const std::vector<uint8_t> payload = filled(*codec, LayoutId::kVerbatim, rows, cols, 7);
    for (const LayoutId layout : {LayoutId::kR16, LayoutId::kPlanes})
      EXPECT_EQ(filled(*codec, layout, rows, cols, 7), packed(*codec, layout, payload, rows, cols)) << codec->name;
  }
}

TEST(FillRandom, FillsGroupsThatCrossRowEnds) {
  const Codec& codec = *find_codec("q4_block");
  const std::vector<uint8_t> bytes = filled(codec, LayoutId::kVerbatim, 5, 50, 1);
  for (uint64_t r = 0; r < 5; ++r)
    for (const uint32_t bits : reference_row(codec, bytes, 5, 50, r))
      EXPECT_LT(std::fabs(std::bit_cast<float>(bits)), 0.05f);
}

struct PinnedFill {
  std::string_view codec;
  uint64_t hash;
};

// FNV-1a of 18 rows of 512 weights, seed 1: a change here changes every measured synthetic model.
constexpr PinnedFill kPinned[] = {
    {"f32", 0x2a4ad90bc8a7972c},      {"f16", 0x275537561f97aa36},         {"bf16", 0x93d8ac0fdf7a62ba},
    {"q8_row", 0xcf873db278f6cb31},   {"q8_2f", 0x4d74663936f1e738},       {"q4_block", 0xf6ad6cc8b5eed7f6},
    {"q4_tiled", 0x79726e7a6d61040c}, {"q4tp", 0x24db0157185b2ef4},        {"q4_0", 0x5cc0fbc9df589608},
    {"q4_1", 0x69820734bd2c2f6f},     {"q5_0", 0x475f901d89b45f0d},        {"q5_1", 0x7dc687c24142ff2d},
    {"q8_0", 0xf548a90de289c07d},     {"q4_k", 0x82eef27b05ad8d54},        {"q5_k", 0xfe9ec0e0673d4e4c},
    {"q6_k", 0xb0070b0c0cea0299},     {"iq4_nl", 0x6e1ea0a118174b67},      {"tq1_0", 0xb89d6414de645333},
    {"q3_k", 0xe2c72139690b1f8c},     {"q1g", 0xf6cd6a1b010eda17},         {"iq2_xs", 0x3a7a510607fe643f},
    {"q2tp", 0xe505af33b5a70b93},     {"q2tp_affine", 0xbe3ab45d5138ae58}, {"iq2_xxs", 0x3e2349d55ebfb684},
    {"q2_0", 0xb70b4a02c454e162},     {"q2_0_g128", 0x9175b92d0d78a942},   {"iq1_s", 0xe91b614bef26d96b},
    {"i2_s", 0x2dd07336cb3f535d},     {"g8_0", 0x510a95cc2035c0d7},        {"mxfp4_ggml", 0x6e953be715caeb49},
    {"q1", 0x9ce603d82b5a22dd},       {"nvfp4", 0x279467fd57cc2d17},       {"iq1_m", 0xe985170389c07314},
    {"iq4_xs", 0x7db514d689ded3f2},   {"blr", 0xaaef49dec666b298},         {"fv5", 0xae262815d265fa0e},
    {"fv5b", 0x972c9528512fe1a9},     {"q8_k", 0x972c9528512fe1a9},        {"iq3_xxs", 0x6c00f82a68061445},
    {"stq1_0", 0xdab0b208f685b770},   {"tq2_0", 0x401d9e6060f429b},        {"i8_s", 0x2f9f3d350d0f22b3},
    {"vbit", 0xcb468a808c97c875},     {"vbit_ro", 0xfcf92e2c3084459a},     {"q1t", 0x813493aed6079830},
    {"q2_k", 0x5e467cf524a5361f},     {"mxfp4", 0x7bdcc5a384a044dd},       {"ptq1_0", 0x48e4ced2fe31d741},
    {"iq3_s", 0xca3a752cc4d0e571},    {"q1_0", 0x8c4e1b12acea7715},        {"iq2_s", 0x9e342120755eb1c},
    {"q1s", 0x6c7bc18e35690b2d},      {"blr_u", 0x6d2a8bce69997ee8},       {"blr_v", 0x7870da3116c286c1},
};

TEST(FillRandom, IsTheSameOnEveryMachine) {
  EXPECT_EQ(std::size(kPinned), weight_codecs().size());
  for (const PinnedFill& test : kPinned) {
    const Codec& codec = *find_codec(test.codec);
    const LayoutId layout = r16_format(codec, 512).ok() ? LayoutId::kR16 : LayoutId::kVerbatim;
    EXPECT_EQ(fnv1a(filled(codec, layout, 18, 512, 1)), test.hash) << test.codec;
  }
}

TEST(FillRandom, SeedsDiffer) {
  const Codec& codec = *find_codec("q8_0");
  EXPECT_NE(filled(codec, LayoutId::kR16, 2, 64, 1), filled(codec, LayoutId::kR16, 2, 64, 2));
}

TEST(FillRandom, RefusesRawDataAndWrongBuffers) {
  const Codec& raw = *find_codec("u32");
  std::vector<uint8_t> bytes(*raw.payload_bytes(raw, 2, 4));
  EXPECT_FALSE(fill_random(raw, LayoutId::kVerbatim, 2, 4, 1, bytes).ok());
  const Codec& codec = *find_codec("q8_0");
  EXPECT_FALSE(fill_random(codec, LayoutId::kR16, 2, 64, 1, bytes).ok());
}

} // namespace
} // namespace cortiq::formats

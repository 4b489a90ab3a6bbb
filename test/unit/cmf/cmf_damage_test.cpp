// Random damage: a reader may accept or refuse a damaged file, but it answers in words and never reads past its bytes.

#include <gtest/gtest.h>
#include <random>

#include "formats/cmf/cmf_file.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

constexpr int kTrials = 2000;

/// Uses everything that an opened file hands out, so that a sanitizer sees bad views.
void use(const CmfFile& file) {
  (void)file.verify();
  (void)file.check_runnable();
  uint64_t sum = 0;
  for (const Tensor& tensor : file.tensors()) {
    if (StatusOr<std::vector<float>> values = decode_tensor(tensor); values.ok())
      sum += values->size();
    EXPECT_EQ(file.find(tensor.name), &tensor);
  }
  if (file.masks())
    for (const CmfMask& mask : file.masks()->masks)
      for (const auto& area : {mask.ffn, mask.heads, mask.gates, mask.experts})
        for (const uint8_t byte : area)
          sum += byte;
  EXPECT_GE(sum, 0u);
}

void try_damage(const std::vector<uint8_t>& sound, size_t interesting, uint32_t seed) {
  const test::ScratchFolder folder;
  std::mt19937 random(seed);
  int refused = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<uint8_t> bytes = sound;
    if (trial % 4 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      // Mostly where the structure is; payload bytes are all alike.
      const size_t range = trial % 4 == 1 ? bytes.size() : interesting;
      for (uint32_t flips = 1 + random() % 3; flips > 0; --flips)
        bytes[random() % range] ^= static_cast<uint8_t>(1 + random() % 255);
    }
    test::write_bytes(folder / "a.cmf", bytes);
    const StatusOr<CmfFile> file = CmfFile::open(folder / "a.cmf");
    if (file.ok()) {
      use(*file);
      continue;
    }
    ++refused;
    ASSERT_TRUE(test::is_one_sentence(file.status().message())) << file.status().message();
    ASSERT_EQ(exit_code(file.status()), 2);
  }
  EXPECT_GT(refused, kTrials / 4) << "the damage has to hit something";
}

TEST(CmfDamage, WrittenFile) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_sample(folder / "sound.cmf").ok());
  const std::vector<uint8_t> sound = test::read_bytes(folder / "sound.cmf");
  try_damage(sound, 2048, 1);
}

TEST(CmfDamage, Fixture) {
  CORTIQ_NEED_FIXTURES();
  try_damage(test::read_bytes(test::fixtures() + "/models/qwen3_tied-q1.cmf"), 4096, 2);
}

} // namespace
} // namespace cortiq::formats

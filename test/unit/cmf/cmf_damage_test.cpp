// Random damage: a reader may accept or refuse a damaged file, but it answers in words and never reads past its bytes.

#include <gtest/gtest.h>

#include "formats/cmf/cmf_file.h"
#include "test/unit/base/damage.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

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

/// `interesting` bytes are where the structure is; payload bytes are all alike.
void try_damage(const std::vector<uint8_t>& sound, size_t interesting, uint32_t seed) {
  test::expect_answers_to_damage(sound, interesting, seed, "a.cmf", CmfFile::open, use);
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

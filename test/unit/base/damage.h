#pragma once

// Random damage to files. A reader may accept or refuse a damaged file, but it answers in words and never reads past
// the file's bytes, which sanitizers see.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "formats/status.h"
#include "test/unit/base/test_files.h"

namespace cortiq::test {

/// Cuts `sound` and changes bytes of it, a few thousand times, opens each with `open(path)`, and gives what opens to
/// `use(file)`. Two of four trials are in the first `interesting` bytes, one anywhere.
template <class Open, class Use>
void expect_answers_to_damage(const std::vector<uint8_t>& sound, size_t interesting, uint32_t seed,
                              const std::string& name, Open open, Use use) {
  constexpr int kTrials = 2000;
  const ScratchFolder folder;
  std::mt19937 random(seed);
  int refused = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<uint8_t> bytes = sound;
    if (trial % 4 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      const size_t range = trial % 4 == 1 ? bytes.size() : interesting;
      for (uint32_t flips = 1 + random() % 3; flips > 0; --flips)
        bytes[random() % range] ^= static_cast<uint8_t>(1 + random() % 255);
    }
    write_bytes(folder / name, bytes);
    const auto file = open(folder / name);
    if (file.ok()) {
      use(*file);
      continue;
    }
    ++refused;
    ASSERT_TRUE(is_one_sentence(file.status().message())) << file.status().message();
    ASSERT_EQ(exit_code(file.status()), 2);
  }
  EXPECT_GT(refused, kTrials / 4) << "the damage has to hit something";
}

} // namespace cortiq::test

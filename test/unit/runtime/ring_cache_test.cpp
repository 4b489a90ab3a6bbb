// Caches that are rings: the logits of a cache that keeps everything, in memory that does not depend on the context.

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "runtime/session/session.h"
#include "test/unit/runtime/session_fixture.h"
#include "test/unit/runtime/window_model.h"

namespace cortiq::runtime {
namespace {

using test::write_window_model;

constexpr uint32_t kVocab = test::kWindowVocab;
constexpr uint64_t kLong = test::kWindowContext; // several times around a ring of 70 + 24 positions, rounded up to 128

class RingCache : public test::SessionFixture {
protected:
  RingCache() : SessionFixture(kVocab) {}

  std::shared_ptr<const Model> load(bool ring, uint64_t max_context = kLong) {
    const std::string path = folder_.file("m" + std::to_string(ring) + std::to_string(max_context) + ".cqa");
    return SessionFixture::load(path, write_window_model(path, ring, max_context));
  }

  std::unique_ptr<Session> session(bool ring, KvType kv = KvType::kF32, uint64_t max_context = kLong) {
    return open(load(ring, max_context), 2, kv);
  }
};

TEST_F(RingCache, GivesTheLogitsOfACacheThatKeepsEverything) {
  const auto tokens = text(kLong);
  for (const KvType kv : {KvType::kF32, KvType::kF16}) {
    const std::vector<float> want = run(*session(false, kv), tokens);
    for (const size_t chunk : {1u, 7u, 24u, 200u, 600u}) // also longer than the window
      expect_same(run(*session(true, kv), tokens, chunk), want, "chunks of " + std::to_string(chunk));
  }
}

TEST_F(RingCache, GoesBackToAnyPosition) {
  const auto tokens = text(kLong - 50), other = text(50, 1);
  auto one = session(true), all = session(false);
  for (const uint64_t back : {549u, 540u, 510u, 490u, 300u, 100u, 1u, 0u}) { // within the ring, and beyond
    one->reset();
    all->reset();
    run(*one, tokens, 40);
    run(*all, tokens, 40);
    one->rewind(back);
    all->rewind(back);
    expect_same(run(*one, other, 11), run(*all, other, 11), "back to " + std::to_string(back));
  }
}

TEST_F(RingCache, TakesTheSameMemoryWhateverTheContext) {
  EXPECT_EQ(session(true, KvType::kF32, 100'000)->reserved_bytes(), session(true)->reserved_bytes());
  EXPECT_GT(session(false, KvType::kF32, 100'000)->reserved_bytes(), session(false)->reserved_bytes());
}

TEST_F(RingCache, RefusesARingWithoutAWindow) {
  ASSERT_TRUE(write_window_model(folder_.file("bad.cqa"), true, kLong, 0).ok());
  const auto model = Model::load(folder_.file("bad.cqa"));
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("a ring without a window"), std::string::npos) << model.status().message();
}

} // namespace
} // namespace cortiq::runtime

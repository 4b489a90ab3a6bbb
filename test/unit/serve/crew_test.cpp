#include "tools/cortiq-serve/engine/crew.h"

#include <atomic>
#include <gtest/gtest.h>
#include <vector>

namespace cortiq::serve {
namespace {

TEST(Crew, DoesEachPieceOnce) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    Crew crew(threads);
    for (size_t round = 0; round < 300; ++round) {
      const size_t count = round % 9;
      std::vector<int> done(count, 0);
      crew.run(count, [&](size_t i) { ++done[i]; });
      for (const int times : done)
        ASSERT_EQ(times, 1);
    }
  }
}

} // namespace
} // namespace cortiq::serve

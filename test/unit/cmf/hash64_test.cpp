#include "formats/cmf/hash64.h"

#include <numeric>
#include <vector>

#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

TEST(Hash64, GivesTheValuesOfTheSpecification) {
  std::vector<uint8_t> ramp(64);
  std::iota(ramp.begin(), ramp.end(), uint8_t{0});
  EXPECT_EQ(hash64({}), 0u);
  EXPECT_EQ(hash64(test::bytes_of("a")), 0x247f1eaecb8be39a);
  EXPECT_EQ(hash64(test::bytes_of("abcdefgh")), 0x47da24881d1e74a9);
  EXPECT_EQ(hash64(test::bytes_of("model.norm.weight")), 0xfc35de143a8d69a1);
  EXPECT_EQ(hash64(ramp), 0x79d1716e27089b08);
  EXPECT_EQ(hash64(std::vector<uint8_t>(8)), 0x46abcca593a3c687);
  EXPECT_EQ(hash64(std::vector<uint8_t>(16)), 0x00ddbea04ad81625);
}

} // namespace
} // namespace cortiq::formats

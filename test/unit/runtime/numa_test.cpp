#include "runtime/cpu/numa.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

#include "runtime/cpu/limits.h"
#include "runtime/session/reserved_memory.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Numa : public ::testing::Test {
protected:
  void put(const std::string& path, const std::string& text) {
    const std::string full = root_.path() + "/sys/devices/system/node/" + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text << "\n";
  }
  static std::vector<unsigned> first_cpus(unsigned count) {
    std::vector<unsigned> out(count);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  test::TemporaryFolder root_;
};

TEST_F(Numa, NodesHaveTheProcessorsThatThisProcessMayUse) {
  put("online", "0-2,5");
  put("node0/cpulist", "0-3,8-11");
  put("node1/cpulist", "4-7,12-15");
  put("node2/cpulist", ""); // memory without processors
  put("node5/cpulist", "16-19");
  const auto nodes = read_numa_nodes(first_cpus(10), root_.path());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].id, 0u);
  EXPECT_THAT(nodes[0].cpus, ElementsAre(0, 1, 2, 3, 8, 9));
  EXPECT_EQ(nodes[1].id, 1u);
  EXPECT_THAT(nodes[1].cpus, ElementsAre(4, 5, 6, 7));
}

TEST_F(Numa, NoTreeMeansNoNodes) {
  EXPECT_THAT(read_numa_nodes(first_cpus(4), root_.path()), IsEmpty());
}

TEST_F(Numa, DamagedListsAreReadAsFarAsTheyGo) {
  put("online", "0,x");
  put("node0/cpulist", "0-1,7-4294967299,3");
  const auto nodes = read_numa_nodes(first_cpus(4), root_.path());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_THAT(nodes[0].cpus, ElementsAre(0, 1));
}

TEST(NumaHomes, AreSharedOutByProcessors) {
  const std::vector<NumaNode> nodes = {{0, {0, 1, 2, 3, 4, 5}}, {1, {6, 7}}};
  auto homes = [&](unsigned workers) {
    std::vector<size_t> out;
    for (unsigned i = 0; i < workers; ++i)
      out.push_back(home_of(i, workers, nodes));
    return out;
  };
  EXPECT_THAT(homes(1), ElementsAre(0));
  EXPECT_THAT(homes(4), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(homes(8), ElementsAre(0, 0, 0, 0, 0, 0, 1, 1));
}

TEST(NumaCalls, WorkOnTheNodesOfThisMachine) {
  const auto nodes = read_numa_nodes();
  if (nodes.empty())
    GTEST_SKIP() << "the system tells of no memory nodes";
  ReservedMemory memory(8 << 20);
  ASSERT_EQ(memory.bytes(), 8u << 20);
  if (!interleave(memory.data(), memory.bytes(), nodes))
    GTEST_SKIP() << "the system refuses mbind";
  std::memset(memory.data(), 1, memory.bytes());
  EXPECT_EQ(memory.data()[memory.bytes() - 1], 1);
  EXPECT_TRUE(bind_thread({0, allowed_cpus()}));
}

TEST(LargePages, AreAnAdvice) {
  ReservedMemory memory(8 << 20, {.large_pages = true, .numa = true});
  ASSERT_EQ(memory.bytes(), 8u << 20);
  std::memset(memory.data(), 1, memory.bytes());
  EXPECT_EQ(memory.data()[12345], 1);
  std::vector<uint8_t> from((20 << 20) + 17);
  std::iota(from.begin(), from.end(), uint8_t{3});
  std::vector<uint8_t> to(from.size());
  copy_parallel(from, to.data(), 3);
  EXPECT_EQ(from, to);
}

} // namespace
} // namespace cortiq::runtime

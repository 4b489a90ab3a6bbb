#include "runtime/cpu/numa.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <map>
#include <mutex>
#include <numeric>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "runtime/cpu/limits.h"
#include "runtime/executor/executor.h"
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
  /// Nodes of these processors, all with memory.
  void put_nodes(const std::vector<std::string>& cpus) {
    const std::string all = "0-" + std::to_string(cpus.size() - 1);
    put("online", all);
    put("has_memory", all);
    for (size_t i = 0; i < cpus.size(); ++i)
      put("node" + std::to_string(i) + "/cpulist", cpus[i]);
  }
  void permit_memory(const std::string& list) {
    std::filesystem::create_directories(root_.path() + "/proc/self");
    std::ofstream(root_.path() + "/proc/self/status")
        << "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t" << list << "\n";
  }
  NumaPlan plan(unsigned cpus) const { return plan_numa(read_numa_nodes(first_cpus(cpus), root_.path())); }
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

std::vector<unsigned> ids(const std::vector<NumaNode>& nodes) {
  std::vector<unsigned> out;
  for (const NumaNode& node : nodes)
    out.push_back(node.id);
  return out;
}

TEST_F(Numa, OneNodeIsLeftToTheSystem) {
  put_nodes({"0-7"});
  EXPECT_THAT(plan(8).homes, IsEmpty());
  EXPECT_THAT(plan(8).memory, IsEmpty());
}

TEST_F(Numa, SeveralNodesShareMemoryAndBindWorkers) {
  put_nodes({"0-3", "4-7"});
  EXPECT_THAT(ids(plan(8).homes), ElementsAre(0, 1));
  EXPECT_THAT(plan(8).memory, ElementsAre(0, 1));
  put_nodes({"0-1", "2-3", "4-5", "6-7"});
  EXPECT_THAT(ids(plan(8).homes), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan(8).memory, ElementsAre(0, 1, 2, 3));
}

TEST_F(Numa, AMaskOfProcessorsLeavesNodesOut) {
  put_nodes({"0-1", "2-3", "4-5", "6-7"});
  EXPECT_THAT(ids(plan(4).homes), ElementsAre(0, 1));
  EXPECT_THAT(plan(4).memory, ElementsAre(0, 1));
  EXPECT_THAT(plan(2).homes, IsEmpty()) << "all of ours are on one node: memory there is nearest";
  EXPECT_THAT(plan(2).memory, IsEmpty());
}

TEST_F(Numa, NodesWithoutMemoryGetWorkersOnly) {
  put_nodes({"0-1", "2-3", "4-5", "6-7"});
  put("has_memory", "0,2-3");
  EXPECT_THAT(ids(plan(8).homes), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan(8).memory, ElementsAre(0, 2, 3));
  put("has_memory", "2");
  EXPECT_THAT(ids(plan(8).homes), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan(8).memory, IsEmpty()) << "one node is no choice";
}

TEST_F(Numa, MemoryWithoutProcessorsIsLeftAlone) {
  put_nodes({"0-3", "4-7", ""});
  EXPECT_THAT(ids(plan(8).homes), ElementsAre(0, 1));
  EXPECT_THAT(plan(8).memory, ElementsAre(0, 1));
}

TEST_F(Numa, ASetOfMemoryNodesIsHeld) {
  put_nodes({"0-1", "2-3", "4-5", "6-7"});
  permit_memory("1-2");
  EXPECT_THAT(ids(plan(8).homes), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan(8).memory, ElementsAre(1, 2));
  permit_memory("3");
  EXPECT_THAT(plan(8).memory, IsEmpty());
}

TEST_F(Numa, IsOnByDefaultAndOffByOption) {
  EXPECT_TRUE(Placement().numa);
  EXPECT_TRUE(placement_of("system", "auto").numa);
  EXPECT_FALSE(placement_of("system", "off").numa);
  EXPECT_FALSE(placement_of("system", "auto").large_pages);
  EXPECT_TRUE(placement_of("large", "off").large_pages);
}

/// Two nodes in name, each with half of the processors that this process has.
class TwoNodes : public Numa {
protected:
  void SetUp() override {
    const std::vector<unsigned> cpus = allowed_cpus();
    if (cpus.size() < 2)
      GTEST_SKIP() << "this process may run on one processor only";
    for (size_t i = 0; i < cpus.size(); ++i)
      nodes_[2 * i / cpus.size()].push_back(cpus[i]);
    std::vector<std::string> lists;
    for (const std::vector<unsigned>& node : nodes_) {
      lists.emplace_back();
      for (const unsigned cpu : node)
        lists.back() += (lists.back().empty() ? "" : ",") + std::to_string(cpu);
    }
    put_nodes(lists);
  }
  /// By the system's answer, of the memory at `address` or, with none, of what this thread touches first.
  static int memory_policy(void* address = nullptr) {
    int mode = -1;
    syscall(SYS_get_mempolicy, &mode, nullptr, 0ul, address, address ? MPOL_F_ADDR : 0ul);
    return mode;
  }

  std::vector<unsigned> nodes_[2];
};

/// As many items as there are workers; each waits for the others, so that every worker takes one.
class MeetingCall final : public Call {
public:
  explicit MeetingCall(unsigned workers) : workers_(workers) {}
  CallInfo info() const override { return {"meeting", 0, 0, 0}; }
  uint64_t items(const StepShape&) const override { return workers_; }
  void run(const StepContext&, const StepShape&, uint64_t begin, uint64_t end, uint8_t*) const override {
    for (uint64_t i = begin; i < end; ++i) {
      {
        const std::lock_guard lock(mutex_);
        seen_[gettid()] = {allowed_cpus(), policy_()};
      }
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (met() < workers_ && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
    }
  }
  size_t met() const {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }

  struct Seen {
    std::vector<unsigned> cpus;
    int policy;
  };
  std::function<int()> policy_;
  mutable std::map<pid_t, Seen> seen_;

private:
  unsigned workers_;
  mutable std::mutex mutex_;
};

TEST_F(TwoNodes, WorkersRunAtHomeAndTouchMemoryInTurn) {
  bool permitted = false; // by the system this runs on; a sandbox may refuse
  std::thread([&] { permitted = interleave_thread(std::vector<unsigned>{0, 1}); }).join();
  for (const bool numa : {true, false}) {
    constexpr unsigned kWorkers = 3;
    ResolvedProgram program;
    auto call = std::make_unique<MeetingCall>(kWorkers);
    const MeetingCall& meeting = *call;
    call->policy_ = [] { return memory_policy(); };
    call->number = program.call_count++;
    program.stages.emplace_back();
    program.stages.back().calls.push_back(std::move(call));
    Executor executor(program, kWorkers, false, {.numa = numa, .root = root_.path()});
    executor.step({}, 1, 0, 1);
    ASSERT_EQ(meeting.seen_.size(), kWorkers);
    const std::vector<unsigned> all = allowed_cpus();
    EXPECT_EQ(meeting.seen_.at(gettid()).cpus, all) << "the caller's thread is not ours to bind";
    EXPECT_EQ(meeting.seen_.at(gettid()).policy, MPOL_DEFAULT);
    std::vector<std::vector<unsigned>> others;
    for (const auto& [thread, seen] : meeting.seen_)
      if (thread != gettid()) {
        others.push_back(seen.cpus);
        EXPECT_EQ(seen.policy, numa && permitted ? MPOL_INTERLEAVE : MPOL_DEFAULT);
      }
    if (numa)
      EXPECT_THAT(others, ::testing::UnorderedElementsAre(nodes_[0], nodes_[1]));
    else
      EXPECT_THAT(others, ::testing::Each(all));
  }
}

TEST_F(TwoNodes, MemoryIsInterleavedUnlessToldOtherwise) {
  ReservedMemory probe(1 << 20);
  const bool permitted = interleave(probe.data(), probe.bytes(), std::vector<unsigned>{0, 1});
  const ReservedMemory on(1 << 20, {.root = root_.path()});
  const ReservedMemory off(1 << 20, {.numa = false, .root = root_.path()});
  EXPECT_EQ(memory_policy(on.data()), permitted ? MPOL_INTERLEAVE : MPOL_DEFAULT);
  EXPECT_EQ(memory_policy(off.data()), MPOL_DEFAULT);
  on.data()[1234] = 1; // and can be touched, on nodes that this machine has
  permit_memory("0");
  EXPECT_EQ(memory_policy(ReservedMemory(1 << 20, {.root = root_.path()}).data()), MPOL_DEFAULT);
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
  const std::vector<unsigned> nodes = ids(read_numa_nodes());
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

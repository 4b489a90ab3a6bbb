#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cpu/features.h"
#include "runtime/cpu/limits.h"
#include "test/unit/runtime/temporary_folder.h"

namespace cortiq::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Limits : public ::testing::Test {
protected:
  void put(const std::string& path, const std::string& text) {
    const std::string full = root_.path() + path;
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full) << text << "\n";
  }
  test::TemporaryFolder root_;
};

TEST_F(Limits, TightestNestedGroupOfVersionTwoCounts) {
  put("/proc/self/cgroup", "0::/a/b");
  put("/sys/fs/cgroup/cpu.max", "max 100000");
  put("/sys/fs/cgroup/a/cpu.max", "150000 100000");
  put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000");
  put("/sys/fs/cgroup/a/b/memory.max", "max");
  put("/sys/fs/cgroup/a/memory.max", "1048576");
  const CpuLimits limits = read_cpu_limits(root_.path());
  EXPECT_DOUBLE_EQ(limits.quota, 1.5);
  EXPECT_EQ(limits.memory_limit, 1048576u);
}

TEST_F(Limits, VersionOneIsRead) {
  put("/proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712");
  const CpuLimits limits = read_cpu_limits(root_.path());
  EXPECT_DOUBLE_EQ(limits.quota, 2.5);
  EXPECT_EQ(limits.memory_limit, 0u);
}

TEST_F(Limits, NoGroupsMeanNoLimits) {
  const CpuLimits limits = read_cpu_limits(root_.path());
  EXPECT_EQ(limits.quota, 0);
  EXPECT_GE(limits.affinity, 1u);
}

TEST(DefaultThreads, AreTheLeastOfAffinityQuotaAndCores) {
  EXPECT_EQ(default_threads({.affinity = 8, .cores = 4}), 4u);
  EXPECT_EQ(default_threads({.affinity = 2, .cores = 4}), 2u);
  EXPECT_EQ(default_threads({.affinity = 8, .cores = 8, .quota = 2.9}), 2u);
  EXPECT_EQ(default_threads({.affinity = 8, .cores = 8, .quota = 0.3}), 1u);
  EXPECT_EQ(default_threads({.affinity = 0, .cores = 0}), 1u);
}

TEST(DefaultThreads, SayWhy) {
  EXPECT_THAT(default_threads_reason({.affinity = 8, .cores = 8, .quota = 2.5}), HasSubstr("quota of 2.50"));
  EXPECT_THAT(default_threads_reason({.affinity = 8, .cores = 4}), HasSubstr("each of 4 cores"));
  EXPECT_THAT(default_threads_reason({.affinity = 8, .cores = 8, .quota = 16}), HasSubstr("each processor"));
}

TEST(Features, CpuidAloneIsNotEnough) {
  CpuState cpu;
  cpu.leaf7_ebx = 1u << 16 | 1u << 5; // avx512f, avx2
  cpu.xcr0 = 0x6;                     // the system saves YMM only
  EXPECT_EQ(feature_state("avx2", cpu), FeatureState::kUsable);
  EXPECT_EQ(feature_state("avx512f", cpu), FeatureState::kNotEnabled);
  EXPECT_EQ(feature_state("fma", cpu), FeatureState::kMissing);
  EXPECT_EQ(feature_state("warp_drive", cpu), FeatureState::kUnknown);
  const std::string needed[] = {"avx2", "avx512f", "fma"};
  const Status status = check_features(needed, cpu);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("fma, which this CPU does not have"), HasSubstr("avx512f, which the operating system")));
  EXPECT_EQ(exit_code(status), 2);
  cpu.xcr0 = 0;
  EXPECT_EQ(feature_state("avx2", cpu), FeatureState::kNotEnabled);
}

TEST(CpuFeatures, ArmsAreBitsOfTheKernelsWords) {
  CpuState a72;
  a72.hwcap = 1u << 1; // asimd
  CpuState a76 = a72, n2 = a72;
  a76.hwcap |= 1u << 20 | 1u << 10; // asimddp, asimdhp
  n2.hwcap = a76.hwcap;
  n2.hwcap2 = 1u << 13; // i8mm
  const std::vector<std::string> dotprod = {"asimd", "asimddp"}, i8mm = {"asimd", "asimddp", "i8mm"};
  EXPECT_TRUE(check_features({{"asimd"}}, a72).ok());
  EXPECT_TRUE(check_features(dotprod, a76).ok());
  EXPECT_TRUE(check_features(i8mm, n2).ok());
  EXPECT_EQ(check_features(i8mm, a72).message(), "its code needs asimddp, i8mm, which this CPU does not have");
  EXPECT_EQ(check_features(i8mm, a76).message(), "its code needs i8mm, which this CPU does not have");
  EXPECT_EQ(best_target(a72), "armv8");
  EXPECT_EQ(best_target(a76), "dotprod");
  EXPECT_EQ(best_target(n2), "i8mm");
  EXPECT_EQ(best_target(CpuState()), "native");
}

} // namespace
} // namespace cortiq::runtime

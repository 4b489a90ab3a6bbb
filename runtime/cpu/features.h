#pragma once

// Which instructions this machine has *and* its operating system has enabled.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"

namespace cortiq::runtime {

/// What CPUID and XGETBV say, on Arm the kernel's HWCAP words; a test may fill it by hand.
struct CpuState {
  std::string name; ///< brand string
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0, leaf7_1_edx = 0;
  uint32_t leaf80000001_ecx = 0;
  uint32_t hwcap = 0, hwcap2 = 0;
  uint64_t xcr0 = 0; ///< 0 when the system has not enabled XGETBV
};

CpuState read_cpu_state();

enum class FeatureState { kUsable, kMissing, kNotEnabled, kUnknown };

/// State of one feature, named as /proc/cpuinfo names it.
FeatureState feature_state(std::string_view name, const CpuState& cpu);

/// Fails with one sentence that names every feature of `needed` that cannot be used and why.
Status check_features(std::span<const std::string> needed, const CpuState& cpu);

/// The word for --target that fits this machine best: "native", or on Arm, where the compiler may be on another
/// machine, the name of a target.
std::string_view best_target(const CpuState& cpu);

/// Names of every feature that the table knows and that can be used, in the table's order.
std::vector<std::string> usable_features(const CpuState& cpu);
/// And of those that the processor has and the operating system has not enabled.
std::vector<std::string> withheld_features(const CpuState& cpu);

} // namespace cortiq::runtime

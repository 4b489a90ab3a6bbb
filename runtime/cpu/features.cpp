#include "runtime/cpu/features.h"

#include <cstring>
#include <string>

#include "formats/quote.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace cortiq::runtime {
namespace {

// Register state that the operating system must save for a feature (Intel SDM volume 1, chapter 13).
constexpr uint64_t kNone = 0;
constexpr uint64_t kYmm = 0x6;  // SSE and AVX
constexpr uint64_t kZmm = 0xe6; // also opmask, ZMM_Hi256, Hi16_ZMM
constexpr uint64_t kTile = 0x60000;

struct Feature {
  std::string_view name;
  uint32_t CpuState::* word;
  int bit;
  uint64_t state;
};

constexpr Feature kFeatures[] = {
    {"ssse3", &CpuState::leaf1_ecx, 9, kNone},
    {"fma", &CpuState::leaf1_ecx, 12, kYmm},
    {"sse4_1", &CpuState::leaf1_ecx, 19, kNone},
    {"sse4_2", &CpuState::leaf1_ecx, 20, kNone},
    {"movbe", &CpuState::leaf1_ecx, 22, kNone},
    {"popcnt", &CpuState::leaf1_ecx, 23, kNone},
    {"avx", &CpuState::leaf1_ecx, 28, kYmm},
    {"f16c", &CpuState::leaf1_ecx, 29, kYmm},
    {"abm", &CpuState::leaf80000001_ecx, 5, kNone},
    {"bmi1", &CpuState::leaf7_ebx, 3, kNone},
    {"avx2", &CpuState::leaf7_ebx, 5, kYmm},
    {"bmi2", &CpuState::leaf7_ebx, 8, kNone},
    {"avx512f", &CpuState::leaf7_ebx, 16, kZmm},
    {"avx512dq", &CpuState::leaf7_ebx, 17, kZmm},
    {"avx512ifma", &CpuState::leaf7_ebx, 21, kZmm},
    {"avx512cd", &CpuState::leaf7_ebx, 28, kZmm},
    {"avx512bw", &CpuState::leaf7_ebx, 30, kZmm},
    {"avx512vl", &CpuState::leaf7_ebx, 31, kZmm},
    {"avx512vbmi", &CpuState::leaf7_ecx, 1, kZmm},
    {"avx512_vbmi2", &CpuState::leaf7_ecx, 6, kZmm},
    {"gfni", &CpuState::leaf7_ecx, 8, kNone},
    {"avx512_vnni", &CpuState::leaf7_ecx, 11, kZmm},
    {"avx512_bitalg", &CpuState::leaf7_ecx, 12, kZmm},
    {"avx512_vpopcntdq", &CpuState::leaf7_ecx, 14, kZmm},
    {"amx_bf16", &CpuState::leaf7_edx, 22, kTile},
    {"avx512_fp16", &CpuState::leaf7_edx, 23, kZmm},
    {"amx_tile", &CpuState::leaf7_edx, 24, kTile},
    {"amx_int8", &CpuState::leaf7_edx, 25, kTile},
    {"avx_vnni", &CpuState::leaf7_1_eax, 4, kYmm},
    {"avx512_bf16", &CpuState::leaf7_1_eax, 5, kZmm},
    {"amx_fp16", &CpuState::leaf7_1_eax, 21, kTile},
    {"avx_vnni_int8", &CpuState::leaf7_1_edx, 4, kYmm},
    // Bits of HWCAP and HWCAP2 (Linux, arch/arm64/include/uapi/asm/hwcap.h): what the system lets programs use.
    {"asimd", &CpuState::hwcap, 1, kNone},
    {"fphp", &CpuState::hwcap, 9, kNone},
    {"asimdhp", &CpuState::hwcap, 10, kNone},
    {"asimddp", &CpuState::hwcap, 20, kNone},
    {"sve", &CpuState::hwcap, 22, kNone},
    {"i8mm", &CpuState::hwcap2, 13, kNone},
    {"bf16", &CpuState::hwcap2, 14, kNone},
};

const Feature* find(std::string_view name) {
  for (const Feature& feature : kFeatures)
    if (feature.name == name)
      return &feature;
  return nullptr;
}

FeatureState state_of(const Feature& feature, const CpuState& cpu) {
  if (!(cpu.*feature.word >> feature.bit & 1))
    return FeatureState::kMissing;
  return (cpu.xcr0 & feature.state) == feature.state ? FeatureState::kUsable : FeatureState::kNotEnabled;
}

std::vector<std::string> features_in(FeatureState state, const CpuState& cpu) {
  std::vector<std::string> names;
  for (const Feature& feature : kFeatures)
    if (state_of(feature, cpu) == state)
      names.emplace_back(feature.name);
  return names;
}

} // namespace

CpuState read_cpu_state() {
  CpuState cpu;
#if defined(__x86_64__)
  uint32_t a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    cpu.leaf1_ecx = c;
    if (c >> 27 & 1) { // OSXSAVE: XGETBV may be used
      uint32_t low, high;
      __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      cpu.xcr0 = static_cast<uint64_t>(high) << 32 | low;
    }
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    cpu.leaf7_ebx = b;
    cpu.leaf7_ecx = c;
    cpu.leaf7_edx = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
      cpu.leaf7_1_eax = a;
      cpu.leaf7_1_edx = d;
    }
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    cpu.leaf80000001_ecx = c;
  char brand[49] = {};
  for (uint32_t i = 0; i < 3; ++i)
    if (__get_cpuid(0x80000002 + i, &a, &b, &c, &d)) {
      const uint32_t words[4] = {a, b, c, d};
      std::memcpy(brand + 16 * i, words, 16);
    }
  cpu.name = brand;
  while (!cpu.name.empty() && cpu.name.back() == ' ')
    cpu.name.pop_back();
#elif defined(__aarch64__)
  cpu.hwcap = static_cast<uint32_t>(getauxval(AT_HWCAP));
  cpu.hwcap2 = static_cast<uint32_t>(getauxval(AT_HWCAP2));
  cpu.name = "AArch64";
#endif
  return cpu;
}

FeatureState feature_state(std::string_view name, const CpuState& cpu) {
  const Feature* feature = find(name);
  return feature ? state_of(*feature, cpu) : FeatureState::kUnknown;
}

Status check_features(std::span<const std::string> needed, const CpuState& cpu) {
  std::string missing, disabled;
  for (const std::string& name : needed) {
    switch (feature_state(name, cpu)) {
    case FeatureState::kUsable:
      break;
    case FeatureState::kUnknown:
      return unsupported("it needs the CPU feature " + formats::quote(name) + ", which this version does not know");
    case FeatureState::kMissing:
      missing += (missing.empty() ? "" : ", ") + name;
      break;
    case FeatureState::kNotEnabled:
      disabled += (disabled.empty() ? "" : ", ") + name;
      break;
    }
  }
  if (missing.empty() && disabled.empty())
    return {};
  std::string message = "its code needs ";
  if (!missing.empty())
    message += missing + ", which this CPU does not have";
  if (!disabled.empty())
    message += (missing.empty() ? "" : ", and ") + disabled + ", which the operating system has not enabled";
  return unsupported(message);
}

std::string_view best_target(const CpuState& cpu) {
  const auto usable = [&](std::string_view name) { return feature_state(name, cpu) == FeatureState::kUsable; };
  if (!usable("asimd"))
    return "native";
  return !usable("asimddp") ? "armv8" : usable("i8mm") ? "i8mm" : "dotprod";
}

std::vector<std::string> usable_features(const CpuState& cpu) {
  return features_in(FeatureState::kUsable, cpu);
}

std::vector<std::string> withheld_features(const CpuState& cpu) {
  return features_in(FeatureState::kNotEnabled, cpu);
}

} // namespace cortiq::runtime

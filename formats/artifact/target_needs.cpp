#include "formats/artifact/target_needs.h"

#include <elf.h>

namespace cortiq::formats {
namespace {

constexpr std::string_view kX8664V3[] = {"avx", "avx2", "bmi2", "f16c", "fma"};
constexpr std::string_view kAvxVnni[] = {"avx", "avx2", "avx_vnni", "bmi2", "f16c", "fma"};
constexpr std::string_view kAvx512Vnni[] = {"avx",     "avx2",     "avx512_vnni", "avx512bw", "avx512dq",
                                            "avx512f", "avx512vl", "bmi2",        "f16c",     "fma"};
constexpr std::string_view kAvx512Vbmi[] = {"avx",        "avx2",     "avx512_vnni", "avx512bw", "avx512dq", "avx512f",
                                            "avx512vbmi", "avx512vl", "bmi2",        "f16c",     "fma"};
constexpr std::string_view kAmx[] = {"amx_int8", "amx_tile", "avx",     "avx2",       "avx512_vnni",
                                     "avx512bw", "avx512dq", "avx512f", "avx512vbmi", "avx512vl",
                                     "bmi2",     "f16c",     "fma"};
constexpr std::string_view kArmV8[] = {"asimd"};
constexpr std::string_view kDotProd[] = {"asimd", "asimddp"};
constexpr std::string_view kI8mm[] = {"asimd", "asimddp", "i8mm"};

constexpr TargetNeeds kTargets[] = {
    {"x86-64-v3", "v3", EM_X86_64, kX8664V3},
    {"avxvnni", "avxvnni", EM_X86_64, kAvxVnni},
    {"avx512vnni", "avx512vnni", EM_X86_64, kAvx512Vnni},
    {"avx512vbmi", "avx512vbmi", EM_X86_64, kAvx512Vbmi},
    {"amx", "amx", EM_X86_64, kAmx},
    {"armv8", "armv8", EM_AARCH64, kArmV8},
    {"dotprod", "dotprod", EM_AARCH64, kDotProd},
    {"i8mm", "i8mm", EM_AARCH64, kI8mm},
};

} // namespace

std::span<const TargetNeeds> target_needs() {
  return kTargets;
}

const TargetNeeds* find_target_needs(std::string_view name) {
  for (const TargetNeeds& row : kTargets)
    if (row.name == name)
      return &row;
  return nullptr;
}

} // namespace cortiq::formats

#include "codegen/x86/features.h"

#include <algorithm>

namespace cortiq::codegen {
namespace {

struct TargetRow {
  std::string_view name;
  std::vector<std::string> features;
};

const std::vector<TargetRow>& targets() {
  static const std::vector<TargetRow> rows = {
      {"x86-64-v3", {"avx2", "bmi2", "f16c", "fma"}},
      {"avxvnni", {"avx2", "avx_vnni", "bmi2", "f16c", "fma"}},
      {"avx512vnni", {"avx2", "avx512_vnni", "avx512bw", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma"}},
      {"avx512vbmi",
       {"avx2", "avx512_vnni", "avx512bw", "avx512dq", "avx512f", "avx512vbmi", "avx512vl", "bmi2", "f16c", "fma"}},
      {"amx",
       {"amx_int8", "amx_tile", "avx2", "avx512_vnni", "avx512bw", "avx512dq", "avx512f", "avx512vbmi", "avx512vl",
        "bmi2", "f16c", "fma"}},
  };
  return rows;
}

constexpr std::string_view kKnown[] = {"amx_int8", "amx_tile", "avx2",       "avx512_vnni", "avx512bw",
                                       "avx512dq", "avx512f",  "avx512vbmi", "avx512vl",    "avx_vnni",
                                       "bmi2",     "f16c",     "fma"};

} // namespace

StatusOr<X86Features> x86_features(std::span<const std::string> names) {
  for (const std::string& name : names)
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
      return unsupported("the x86 code generator knows no feature named '" + name + "'");
  const auto has_all = [&](std::initializer_list<std::string_view> wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    });
  };
  X86Features features;
  features.avx2 = has_all({"avx2", "bmi2", "f16c", "fma"});
  features.avx_vnni = has_all({"avx_vnni"});
  features.avx512 = has_all({"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  features.avx512_vnni = features.avx512 && has_all({"avx512_vnni"});
  features.avx512_vbmi = features.avx512 && has_all({"avx512vbmi"});
  features.amx = features.avx512_vnni && has_all({"amx_tile", "amx_int8"});
  if (!features.avx2)
    return unsupported("x86 kernels need at least avx2, fma, f16c and bmi2 (target x86-64-v3)");
  return features;
}

StatusOr<X86Features> x86_target(std::string_view target) {
  const std::vector<std::string> names = x86_target_features(target);
  if (names.empty())
    return unsupported("the x86 code generator knows no target named '" + std::string(target) + "'");
  return x86_features(names);
}

std::vector<std::string> x86_target_features(std::string_view target) {
  for (const TargetRow& row : targets())
    if (row.name == target)
      return row.features;
  return {};
}

} // namespace cortiq::codegen

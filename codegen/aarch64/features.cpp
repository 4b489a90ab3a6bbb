#include "codegen/aarch64/features.h"

namespace cortiq::codegen {
namespace {

struct TargetRow {
  std::string_view name;
  Aarch64Features features;
  std::vector<std::string> names;
};

const std::vector<TargetRow>& targets() {
  static const std::vector<TargetRow> rows = {
      {"armv8", {}, {"asimd"}},
      {"dotprod", {.dotprod = true}, {"asimd", "asimddp"}},
      {"i8mm", {.dotprod = true, .i8mm = true}, {"asimd", "asimddp", "i8mm"}},
  };
  return rows;
}

const TargetRow* find(std::string_view target) {
  for (const TargetRow& row : targets())
    if (row.name == target)
      return &row;
  return nullptr;
}

} // namespace

StatusOr<Aarch64Features> aarch64_target(std::string_view target) {
  if (const TargetRow* row = find(target))
    return row->features;
  return unsupported("the AArch64 code generator knows no target named '" + std::string(target) + "'");
}

std::vector<std::string> aarch64_target_features(std::string_view target) {
  const TargetRow* row = find(target);
  return row ? row->names : std::vector<std::string>();
}

} // namespace cortiq::codegen

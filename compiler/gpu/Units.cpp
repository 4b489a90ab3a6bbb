#include "compiler/gpu/Units.h"

#include <algorithm>

namespace cortiq::compiler {
namespace {

/// Stages that belong to one unit with all between them.
class Units {
public:
  explicit Units(size_t count) : goesOn_(count) {}
  void join(uint32_t a, uint32_t b) {
    for (uint32_t s = std::min(a, b); s < std::max(a, b); ++s)
      goesOn_[s] = true;
  }
  std::vector<uint32_t> numbers() const {
    std::vector<uint32_t> out;
    uint32_t unit = 0;
    for (const bool goesOn : goesOn_) {
      out.push_back(unit);
      unit += goesOn ? 0 : 1;
    }
    return out;
  }

private:
  std::vector<bool> goesOn_; ///< with the stage behind
};

} // namespace

std::vector<uint32_t> findUnits(size_t count, const std::vector<GpuStage>& single,
                                const std::vector<ExpertGroup>& experts) {
  Units units(count);
  llvm::DenseMap<uint32_t, uint32_t> unfinished; // slot: a stage that leaves it so
  for (const GpuStage& stage : single) {
    for (const uint32_t s : stage.covers)
      units.join(stage.covers[0], s);
    for (const GpuCall& call : stage.calls)
      for (const uint32_t slot : call.reads)
        if (const auto writer = unfinished.find(slot); writer != unfinished.end())
          units.join(writer->second, stage.covers[0]);
    for (const GpuCall& call : stage.calls)
      for (const uint32_t slot : call.writes)
        unfinished.erase(slot);
    for (const uint32_t slot : stage.unfinished)
      unfinished[slot] = stage.covers[0];
  }
  for (const ExpertGroup& group : experts)
    if (group.reason.empty())
      units.join(group.first, group.last);
  return units.numbers();
}

} // namespace cortiq::compiler

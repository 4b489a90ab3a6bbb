#include "runtime/ops/moe_stages.h"

#include "runtime/loader/resolver.h"

namespace cortiq::runtime {
namespace {

/// The calls of the stage that are a `Kind`; none where a skill chooses between calls, or a mask cuts them.
template <class Kind>
std::vector<Kind*> free_calls(const Stage& stage) {
  std::vector<Kind*> found;
  for (const auto& call : stage.calls)
    if (auto* one = dynamic_cast<Kind*>(call.get())) {
      if (!stage.points.empty() || call->mask.kind != MaskBits::Kind::kNone || call->gate)
        return {};
      found.push_back(one);
    }
  return found;
}

bool run_together(const Stage& a, const Stage& b) {
  return a.head == b.head && a.stream == b.stream && a.draft == b.draft;
}

void read_in_place(const Stage& copying, const std::vector<ExpertProducts*>& products) {
  for (PairCopies* call : free_calls<PairCopies>(copying)) {
    const std::vector<ArenaRange> copies = call->copies();
    bool all = !copies.empty();
    for (const ExpertProducts* product : products)
      all = all && product->can_read_in_place(copies);
    if (!all)
      continue;
    call->leave_out(kTokensInPlace);
    for (ExpertProducts* product : products)
      product->read_in_place(kTokensInPlace);
  }
}

} // namespace

ArenaRange arena_range(const Resolver& resolver, uint32_t index) {
  const SlotRef& slot = resolver.slots[index];
  return {slot.offset, slot.offset + slot.stride * resolver.max_batch};
}

void join_expert_stages(std::vector<Stage>& stages) {
  for (size_t i = 1; i + 1 < stages.size(); ++i) {
    const std::vector<ExpertProducts*> products = free_calls<ExpertProducts>(stages[i]);
    if (products.empty())
      continue;
    if (run_together(stages[i - 1], stages[i]))
      read_in_place(stages[i - 1], products);
    const std::vector<PairGates*> gates = free_calls<PairGates>(stages[i + 1]);
    if (products.size() == 2 && gates.size() == 1 && run_together(stages[i], stages[i + 1]))
      products[0]->make_gates(*products[1], *gates[0]);
  }
}

} // namespace cortiq::runtime

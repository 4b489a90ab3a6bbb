#include "runtime/ops/gate_stages.h"

#include <algorithm>

#include "runtime/ops/stage_calls.h"

namespace cortiq::runtime {
namespace {

GatedProduct* product_of(const std::vector<GatedProduct*>& products, uint32_t slot) {
  const auto found =
      std::find_if(products.begin(), products.end(), [&](const GatedProduct* p) { return p->result_slot() == slot; });
  return found == products.end() ? nullptr : *found;
}

bool keeps_clear(const std::vector<GatedProduct*>& products, const BlockGates& gates, uint64_t max_batch) {
  for (const GatedProduct* product : products)
    for (const SlotRef& read : product->read())
      for (const SlotRef& written : gates.written())
        if (arena_range(read, max_batch).meets(arena_range(written, max_batch)))
          return false;
  return true;
}

} // namespace

void join_gate_stages(std::vector<Stage>& stages, uint64_t max_batch, std::span<const uint32_t> uses) {
  constexpr uint32_t kMadeAndRead = 2;
  for (size_t i = 1; i < stages.size(); ++i) {
    Stage &before = stages[i - 1], &stage = stages[i];
    if (!run_together(before, stage))
      continue;
    const std::vector<GatedProduct*> products = free_calls<GatedProduct>(before);
    if (products.size() != before.calls.size()) // of others it is not known what they read
      continue;
    for (BlockGates* gates : free_calls<BlockGates>(stage)) {
      GatedProduct* gate = product_of(products, gates->gate_slot());
      GatedProduct* up = product_of(products, gates->up_slot());
      if (gate && up && gate != up && uses[gates->gate_slot()] == kMadeAndRead &&
          uses[gates->up_slot()] == kMadeAndRead && keeps_clear(products, *gates, max_batch) &&
          gate->make_gates(*up, *gates))
        gates->leave_to(*gate);
    }
  }
}

} // namespace cortiq::runtime

#include "runtime/ops/moe_stages.h"

#include "runtime/loader/resolver.h"
#include "runtime/ops/router_lookahead.h"
#include "runtime/ops/stage_calls.h"

namespace cortiq::runtime {
namespace {

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

/// Whether nothing that the stage reads is among what `gates` writes.
bool keeps_clear(const Stage& stage, const PairGates& gates, uint64_t max_batch) {
  for (const auto& call : stage.calls) {
    std::vector<ArenaRange> reads;
    if (const auto* product = dynamic_cast<const ExpertProducts*>(call.get())) {
      reads = product->reads();
    } else if (const auto* plain = dynamic_cast<const TokenProduct*>(call.get())) {
      reads.push_back(arena_range(plain->token_input(), max_batch)); // the shared expert's has no residual
    } else {
      return false;
    }
    for (const ArenaRange& read : reads)
      for (const ArenaRange& written : gates.written())
        if (read.meets(written))
          return false;
  }
  return true;
}

} // namespace

ArenaRange arena_range(const Resolver& resolver, uint32_t index) {
  return arena_range(resolver.slots[index], resolver.max_batch);
}

void join_expert_stages(std::vector<Stage>& stages, uint64_t max_batch) {
  for (size_t i = 1; i + 1 < stages.size(); ++i) {
    const std::vector<ExpertProducts*> products = free_calls<ExpertProducts>(stages[i]);
    if (products.empty())
      continue;
    if (run_together(stages[i - 1], stages[i]))
      read_in_place(stages[i - 1], products);
    const std::vector<PairGates*> gates = free_calls<PairGates>(stages[i + 1]);
    if (products.size() == 2 && gates.size() == 1 && run_together(stages[i], stages[i + 1]) &&
        keeps_clear(stages[i], *gates[0], max_batch))
      products[0]->make_gates(*products[1], *gates[0]);
  }
}

} // namespace cortiq::runtime

#include "runtime/ops/router_lookahead.h"

#include <algorithm>

#include "runtime/experts/expert_ticket.h"

namespace cortiq::runtime {
namespace {

uint64_t round_up_64(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

class RouterLookaheadCall final : public Call {
public:
  RouterLookaheadCall(const SlotRef& input, const RouterRef& next, uint32_t layer)
      : input_(input), next_(next), layer_(layer) {}

  CallInfo info() const override { return {"router_lookahead", next_.choice->expert_count(), input_.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count == 1 ? 1 : 0; }
  uint64_t scratch_bytes() const override {
    return logits_bytes() +
           std::max(next_.product.product->product_scratch_bytes(), next_.choice->choice_scratch_bytes());
  }

  void run(const StepContext& step, const StepShape& shape, uint64_t, uint64_t, uint8_t* scratch) const override {
    if (!step.experts)
      return;
    auto* logits = reinterpret_cast<float*>(scratch);
    uint8_t* rest = scratch + logits_bytes();
    next_.product.product->of_token(input_.bytes(step.arena, shape.first), logits, rest);
    std::vector<int32_t>& ids = step.experts->predicted(layer_);
    ids.resize(next_.choice->choice_count());
    next_.choice->of_logits(step, logits, ids.data(), rest);
  }

private:
  uint64_t logits_bytes() const { return round_up_64(next_.choice->expert_count() * sizeof(float)); }

  SlotRef input_;
  RouterRef next_;
  uint32_t layer_;
};

} // namespace

void add_router_lookahead(std::span<const RouterRef> routers, std::vector<Stage>& stages) {
  for (uint32_t next = 1; next < routers.size(); ++next) {
    const ProductRef &from = routers[next - 1].product, &to = routers[next].product;
    if (!from.product || !to.product || from.q8 != to.q8 ||
        from.product->token_input().elements != to.product->token_input().elements)
      continue;
    for (Stage& stage : stages) {
      const bool here = std::any_of(stage.calls.begin(), stage.calls.end(), [&](const auto& call) {
        return dynamic_cast<const TokenProduct*>(call.get()) == from.product;
      });
      if (!here)
        continue;
      stage.calls.push_back(std::make_unique<RouterLookaheadCall>(from.product->token_input(), routers[next], next));
      break;
    }
  }
}

} // namespace cortiq::runtime

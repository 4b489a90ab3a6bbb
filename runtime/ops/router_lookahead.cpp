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

namespace {

Stage* stage_of(const TokenProduct* product, std::vector<Stage>& stages) {
  for (Stage& stage : stages)
    for (const auto& call : stage.calls)
      if (dynamic_cast<const TokenProduct*>(call.get()) == product)
        return &stage;
  return nullptr;
}

} // namespace

void add_router_lookahead(std::span<const RouterRef> routers, std::vector<Stage>& stages) {
  for (uint32_t next = 1; next < routers.size(); ++next) {
    const ProductRef &from = routers[next - 1].product, &to = routers[next].product;
    if (!from.product || !to.product || from.q8 != to.q8 ||
        from.product->token_input().elements != to.product->token_input().elements)
      continue;
    Stage *here = stage_of(from.product, stages), *there = stage_of(to.product, stages);
    // A step runs the trunk or the draft.
    if (here && there && here->draft == there->draft)
      here->calls.push_back(std::make_unique<RouterLookaheadCall>(from.product->token_input(), routers[next], next));
  }
}

} // namespace cortiq::runtime

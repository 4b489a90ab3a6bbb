// Scores of experts by how far a token lies from what each has learnt: its mean, and a few directions around it.
// Sums are f64, so that near ties are decided as in the reference.

#include <limits>

#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

struct Resonator {
  const float *mean, *basis;
  float bias;
  const float* shell; ///< null: there is none
};

class ResonanceCall final : public Call {
public:
  CallInfo info() const override {
    return {"resonance", experts.size() * (1 + rank), width, experts.size() * (1 + rank) * width * sizeof(float)};
  }
  uint64_t items(const StepShape& shape) const override { return shape.count * experts.size(); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    for (uint64_t item = begin; item < end; ++item) {
      const uint64_t token = shape.first + item / experts.size(), e = item % experts.size();
      out.f32(step.arena, token)[e] = score(experts[e], input.f32(step.arena, token));
    }
  }

  SlotRef input, out;
  std::vector<Resonator> experts;
  uint64_t width = 0, rank = 0;

private:
  float score(const Resonator& expert, const float* x) const {
    double error = 0;
    for (uint64_t i = 0; i < width; ++i) {
      const double away = static_cast<double>(x[i]) - expert.mean[i];
      error += away * away;
    }
    for (uint64_t r = 0; r < rank; ++r) {
      const float* direction = expert.basis + r * width;
      double along = 0;
      for (uint64_t i = 0; i < width; ++i)
        along += direction[i] * (static_cast<double>(x[i]) - expert.mean[i]);
      error -= along * along;
    }
    if (expert.shell && error > *expert.shell)
      return -std::numeric_limits<float>::infinity();
    return static_cast<float>(expert.bias - error);
  }
};

} // namespace

Status resolve_resonance(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  const artifact::ResonanceOp& row = *op.op_as_ResonanceOp();
  auto call = std::make_unique<ResonanceCall>();
  CORTIQ_ASSIGN_OR_RETURN(call->width, resolver.slot_elements(row.input(), "resonance"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(row.input(), call->width, "resonance"));
  const uint32_t count = row.means()->size(), bases = row.bases() ? row.bases()->size() : 0,
                 shells = row.shells() ? row.shells()->size() : 0;
  call->rank = row.rank();
  if (count == 0 || row.biases()->size() != count || shells > count || bases != (row.rank() != 0 ? count : 0) ||
      row.rank() > call->width)
    return invalid("resonance: " + std::to_string(count) + " means, " + std::to_string(bases) + " bases of rank " +
                   std::to_string(row.rank()) + ", " + std::to_string(row.biases()->size()) + " biases and " +
                   std::to_string(shells) + " shells do not fit together");
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(row.out(), count, "resonance"));
  for (uint32_t e = 0; e < count; ++e) {
    Resonator expert{};
    CORTIQ_ASSIGN_OR_RETURN(expert.mean, resolver.vector(row.means()->Get(e), call->width, "mean"));
    if (row.rank() != 0) {
      CORTIQ_ASSIGN_OR_RETURN(expert.basis, resolver.vector(row.bases()->Get(e), call->rank * call->width, "basis"));
    }
    CORTIQ_ASSIGN_OR_RETURN(const float* bias, resolver.vector(row.biases()->Get(e), 1, "expert's bias"));
    expert.bias = *bias;
    if (e >= count - shells) {
      CORTIQ_ASSIGN_OR_RETURN(expert.shell, resolver.vector(row.shells()->Get(e - (count - shells)), 1, "shell"));
    }
    call->experts.push_back(expert);
  }
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime

// Logits of a hierarchical head: of a token's cluster, and of the token within it.

#include <algorithm>
#include <cmath>

#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

/// ln of the sum of e^x over `count` values.
double log_sum(const float* x, uint64_t count) {
  const double most = *std::max_element(x, x + count);
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i)
    sum += std::exp(x[i] - most);
  return most + std::log(sum);
}

class ClusterLogitsCall final : public Call {
public:
  CallInfo info() const override { return {"cluster_logits", clusters.elements, logits.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    const uint64_t size = logits.elements / clusters.elements;
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      const float* cluster = clusters.f32(step.arena, token);
      const double all = log_sum(cluster, clusters.elements);
      float* block = logits.f32(step.arena, token);
      for (uint64_t c = 0; c < clusters.elements; ++c, block += size) {
        const double add = cluster[c] - all - log_sum(block, size);
        for (uint64_t i = 0; i < size; ++i)
          block[i] = static_cast<float>(block[i] + add);
      }
    }
  }

  SlotRef logits, clusters;
};

} // namespace

Status resolve_cluster_logits(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  const artifact::ClusterLogitsOp& entry = *op.op_as_ClusterLogitsOp();
  auto call = std::make_unique<ClusterLogitsCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(entry.logits(), "cluster_logits"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t clusters, resolver.slot_elements(entry.clusters(), "cluster_logits"));
  CORTIQ_ASSIGN_OR_RETURN(call->logits, resolver.f32_slot(entry.logits(), n, "cluster_logits"));
  CORTIQ_ASSIGN_OR_RETURN(call->clusters, resolver.f32_slot(entry.clusters(), clusters, "cluster_logits"));
  if (n % clusters != 0)
    return invalid("cluster_logits: " + std::to_string(clusters) + " clusters do not divide " + std::to_string(n) +
                   " logits");
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime

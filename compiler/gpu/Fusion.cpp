#include "compiler/gpu/Fusion.h"

#include <algorithm>

#include "compiler/gpu/Product.h"

namespace cortiq::compiler {
namespace {

constexpr uint32_t kMostChoicesInProducts =
    512; ///< experts, from which on a step costs less than choosing in each workgroup

bool contains(const std::vector<uint32_t>& list, uint32_t slot) {
  return std::ranges::find(list, slot) != list.end();
}

bool meet(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::ranges::any_of(a, [&](uint32_t slot) { return contains(b, slot); });
}

void addSlot(std::vector<uint32_t>& list, uint32_t slot) {
  if (slot != kAbsent && !contains(list, slot))
    list.push_back(slot);
}

bool onGpu(const GpuStage& stage) {
  return stage.reason.empty();
}

/// Puts the calls of `b` into `a`, and takes it out.
void join(std::vector<GpuStage>& stages, size_t a, size_t b) {
  stages[a].first = std::min(stages[a].first, stages[b].first);
  stages[a].last = std::max(stages[a].last, stages[b].last);
  for (const uint32_t stage : stages[b].covers)
    addSlot(stages[a].covers, stage);
  std::ranges::copy(stages[b].unfinished, std::back_inserter(stages[a].unfinished));
  if (!stages[b].calls.empty())
    stages[a].name += " | " + stages[b].name;
  std::ranges::move(stages[b].calls, std::back_inserter(stages[a].calls));
  stages.erase(stages.begin() + static_cast<ptrdiff_t>(b));
}

void eraseEmpty(std::vector<GpuStage>& stages) {
  std::erase_if(stages, [](const GpuStage& stage) { return onGpu(stage) && stage.calls.empty(); });
}

/// Calls and stages of the CPU that read `slot`.
size_t readers(const std::vector<GpuStage>& stages, uint32_t slot) {
  size_t count = 0;
  for (const GpuStage& stage : stages) {
    if (!onGpu(stage))
      count += contains(stage.reads, slot);
    for (const GpuCall& call : stage.calls)
      count += contains(call.reads, slot);
  }
  return count;
}

} // namespace

GpuCall productCall(std::vector<const artifact::MatmulPartT*> parts, const GpuBuilder& builder) {
  GpuCall out;
  for (const artifact::MatmulPartT* part : parts) {
    addSlot(out.reads, part->input);
    addSlot(out.reads, part->residual);
    addSlot(out.writes, part->out);
    out.products.push_back({part->input, part->weight, part->out});
  }
  // Only whole rows can be in lane order.
  for (const artifact::MatmulPartT* part : parts)
    if (std::ranges::all_of(parts, [&](const artifact::MatmulPartT* other) {
          return other->residual != part->input && (other->input != part->input || other->input_column == 0);
        }))
      addSlot(out.lanes, part->input);
  if (parts.size() == 1 && parts[0]->out_column == 0 &&
      builder.weight(parts[0]->weight).rows == builder.elements(parts[0]->out)) {
    out.normed = parts[0]->out;
    out.lowerWithNorm = [part = parts[0]](GpuBuilder& b, const artifact::NormOpT& norm) {
      return lowerProduct(*part, b, &norm);
    };
  }
  out.lower = [parts = std::move(parts)](GpuBuilder& b) -> Status {
    for (const artifact::MatmulPartT* part : parts)
      CORTIQ_RETURN_IF_ERROR(lowerProduct(*part, b, nullptr));
    return {};
  };
  return out;
}

void Fusion::run(std::vector<GpuStage>& stages) {
  joinGatedUnits(stages);
  joinChoices(stages);
  joinNorms(stages);
  joinHeads(stages);
  joinNeighbours(stages);
}

bool Fusion::joins(const artifact::MatmulPartT& a, const artifact::MatmulPartT& b, const artifact::GluOpT& glu,
                   const std::vector<GpuStage>& stages) const {
  const artifact::WeightT &wa = builder_.weight(a.weight), &wb = builder_.weight(b.weight);
  return a.out == glu.gate && b.out == glu.up && a.out != b.out && readers(stages, a.out) == 1 &&
         readers(stages, b.out) == 1 && a.input == b.input && a.input_column == b.input_column && a.out_column == 0 &&
         b.out_column == 0 && a.residual == kAbsent && b.residual == kAbsent &&
         (a.bias == kAbsent) == (b.bias == kAbsent) && wa.codec == wb.codec && wa.rows == wb.rows &&
         wa.cols == wb.cols && wa.rows == builder_.elements(glu.up) && (glu.out == kAbsent || glu.act_out == kAbsent);
}

void Fusion::joinGatedUnits(std::vector<GpuStage>& stages) const {
  for (size_t i = 0; i < stages.size(); ++i)
    for (size_t c = 0; onGpu(stages[i]) && c < stages[i].calls.size(); ++c) {
      const artifact::MatmulOpT* matmul = stages[i].calls[c].op ? stages[i].calls[c].op->AsMatmulOp() : nullptr;
      if (!matmul)
        continue;
      std::vector<const artifact::MatmulPartT*> rest;
      for (const auto& part : matmul->parts)
        rest.push_back(part.get());
      const auto part = [&](uint32_t slot) {
        const auto found = std::ranges::find_if(rest, [&](const auto* p) { return p->out == slot; });
        return found == rest.end() ? nullptr : *found;
      };
      std::vector<GpuCall> pairs;
      for (size_t j = i + 1; j < stages.size(); ++j)
        std::erase_if(stages[j].calls, [&](const GpuCall& call) {
          const artifact::GluOpT* glu = call.op ? call.op->AsGluOp() : nullptr;
          const artifact::MatmulPartT *gate = glu ? part(glu->gate) : nullptr, *up = glu ? part(glu->up) : nullptr;
          if (!gate || !up || !joins(*gate, *up, *glu, stages))
            return false;
          GpuCall pair = productCall({gate, up}, builder_);
          pair.writes = call.writes;
          pair.writesLanes = true;
          pair.eightBits = EightBits::kWholeGroups;
          pair.lower = [gate, up, glu](GpuBuilder& b) { return lowerGatedPair(*gate, *up, *glu, b); };
          pairs.push_back(std::move(pair));
          for (const uint32_t stage : stages[j].covers)
            addSlot(stages[i].covers, stage);
          std::erase_if(rest, [&](const auto* p) { return p == gate || p == up; });
          return true;
        });
      if (pairs.empty())
        continue;
      if (rest.empty()) {
        stages[i].calls[c] = std::move(pairs.back());
        pairs.pop_back();
      } else {
        stages[i].calls[c] = productCall(std::move(rest), builder_);
      }
      std::ranges::move(pairs, std::back_inserter(stages[i].calls));
    }
  eraseEmpty(stages);
}

bool Fusion::takesNorm(const GpuStage& stage, const GpuStage& next, const std::vector<GpuStage>& stages) const {
  if (!onGpu(stage) || !onGpu(next) || stage.head != next.head || stage.calls.size() != 1 || next.calls.size() != 1)
    return false;
  const GpuCall& product = stage.calls[0];
  const artifact::NormOpT* norm = next.calls[0].op ? next.calls[0].op->AsNormOp() : nullptr;
  if (!norm || !product.lowerWithNorm || product.normed != norm->input || norm->add != kAbsent ||
      norm->sum_out != kAbsent || norm->weight == kAbsent || norm->bias != kAbsent || norm->centered ||
      norm->scale != 1)
    return false;
  const uint64_t elements = builder_.elements(norm->input);
  if (norm->out != kAbsent && norm->act_out != kAbsent && (!eightBits_(norm->act_out) || elements % 32 != 0))
    return false;
  // Only products know what to do with a row that lacks its factor, and only of the width that the norm had.
  for (const uint32_t out : {norm->out, norm->act_out}) {
    if (out == kAbsent)
      continue;
    if (!uses_[out].lanes || uses_[out].natural)
      return false;
    for (const GpuStage& reader : stages)
      for (const GpuCall& call : reader.calls) {
        if (call.takesWhole(out))
          return false;
        for (const GpuCall::Product& read : call.products)
          if (read.input == out && (!call.takesUnfinished || builder_.weight(read.weight).cols != elements))
            return false;
      }
  }
  return true;
}

void Fusion::joinNorms(std::vector<GpuStage>& stages) const {
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    if (!takesNorm(stages[i], stages[i + 1], stages))
      continue;
    GpuCall& product = stages[i].calls[0];
    const GpuCall& norm = stages[i + 1].calls[0];
    product.lower = [lower = product.lowerWithNorm, norm = norm.op->AsNormOp()](GpuBuilder& builder) {
      return lower(builder, *norm);
    };
    product.lowerWithNorm = nullptr;
    for (const uint32_t slot : norm.writes)
      addSlot(product.writes, slot);
    product.writesLanes = true;
    product.eightBits = EightBits::kWholeGroups;
    product.groupValues = 0;
    stages[i].unfinished = norm.writes;
    stages[i + 1].calls.clear();
    join(stages, i, i + 1);
  }
}

void Fusion::joinHeads(std::vector<GpuStage>& stages) const {
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    GpuStage &stage = stages[i], &next = stages[i + 1];
    if (!onGpu(stage) || !onGpu(next) || stage.calls.size() != 1 || next.calls.size() != 1 || !stage.calls[0].op ||
        !next.calls[0].op)
      continue;
    const artifact::AttentionPrepOpT* prep = stage.calls[0].op->AsAttentionPrepOp();
    const artifact::AttentionOpT* attention = next.calls[0].op->AsAttentionOp();
    if (!prep || !attention || prep->layer != attention->layer || prep->q != attention->q ||
        prep->q_column != attention->q_column || prep->heads != attention->heads || isAnchored(*attention) ||
        uses_[prep->q].last != next.last)
      continue;
    GpuCall joined = next.calls[0];
    joined.op = nullptr;
    joined.reads = stage.calls[0].reads;
    for (const uint32_t slot : next.calls[0].reads)
      addSlot(joined.reads, slot);
    for (const uint32_t slot : stage.calls[0].writes)
      addSlot(joined.writes, slot);
    joined.lower = [prep, attention](GpuBuilder& builder) { return lowerAttentionStep(*prep, *attention, builder); };
    stage.calls[0] = std::move(joined);
    next.calls.clear();
    join(stages, i, i + 1);
  }
}

void Fusion::joinChoices(std::vector<GpuStage>& stages) {
  for (GpuStage& stage : stages)
    std::erase_if(stage.calls, [&](const GpuCall& choice) {
      if (choice.choosesFor == kAbsent)
        return false;
      ExpertGroup& group = experts_.groups()[choice.choosesFor];
      if (group.experts > kMostChoicesInProducts || group.mask)
        return false;
      group.routeInProducts = true;
      for (GpuStage& other : stages)
        for (GpuCall& call : other.calls)
          if (call.routed == choice.choosesFor) {
            call.reads = {group.x, group.route->logits};
            call.writes = {group.gated, group.route->ids};
          }
      return true;
    });
  eraseEmpty(stages);
}

void Fusion::joinNeighbours(std::vector<GpuStage>& stages) const {
  const auto slots = [](const GpuStage& stage, std::vector<uint32_t> GpuCall::* list) {
    std::vector<uint32_t> out;
    for (const GpuCall& call : stage.calls)
      for (const uint32_t slot : call.*list)
        addSlot(out, slot);
    return out;
  };
  for (size_t i = 0; i + 1 < stages.size();) {
    const GpuStage &a = stages[i], &b = stages[i + 1];
    const std::vector<uint32_t> written = slots(a, &GpuCall::writes), writes = slots(b, &GpuCall::writes);
    if (onGpu(a) && onGpu(b) && a.head == b.head && !meet(written, slots(b, &GpuCall::reads)) &&
        !meet(written, writes) && !meet(slots(a, &GpuCall::reads), writes))
      join(stages, i, i + 1);
    else
      ++i;
  }
}

} // namespace cortiq::compiler

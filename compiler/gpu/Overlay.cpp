#include "compiler/gpu/Overlay.h"

#include <algorithm>

namespace cortiq::compiler {
namespace {

void addNew(std::vector<uint32_t>& list, const std::vector<uint32_t>& slots) {
  for (const uint32_t slot : slots)
    if (std::ranges::find(list, slot) == list.end())
      list.push_back(slot);
}

/// What no other step may take a part of.
void keepWhole(GpuCall& call) {
  call.op = nullptr;
  call.lowerWithNorm = nullptr;
  call.normed = kAbsent;
}

} // namespace

bool dependsOnOverlay(const artifact::CallT& call) {
  return !call.alternatives.empty() || call.idle || call.mask || call.gate != kAbsent;
}

std::vector<std::pair<const artifact::OpUnion*, artifact::GpuWhenT>> formsOf(const artifact::CallT& call) {
  std::vector<std::pair<const artifact::OpUnion*, artifact::GpuWhenT>> out;
  std::vector<uint32_t> skills;
  bool blends = false;
  for (const auto& alternative : call.alternatives)
    if (alternative->skill == kAbsent)
      blends = true;
    else
      skills.push_back(alternative->skill);
  if (!call.idle) {
    artifact::GpuWhenT& own = out.emplace_back(&call.op, artifact::GpuWhenT()).second;
    own.gate = call.gate;
    own.unless = skills;
    if (blends)
      own.unless_blend = skills;
  }
  for (const auto& alternative : call.alternatives) {
    artifact::GpuWhenT& when = out.emplace_back(&alternative->op, artifact::GpuWhenT()).second;
    when.gate = alternative->gate;
    when.skill = alternative->skill;
    if (alternative->skill == kAbsent)
      when.blend = skills;
  }
  return out;
}

GpuCall joinForms(std::vector<GpuForm> forms, const artifact::MaskBitsT* mask) {
  GpuCall out = forms.front().call;
  keepWhole(out);
  for (const GpuForm& form : forms) {
    addNew(out.reads, form.call.reads);
    addNew(out.writes, form.call.writes);
    addNew(out.lanes, form.call.lanes);
    out.writesLanes = out.writesLanes && form.call.writesLanes;
    out.takesUnfinished = out.takesUnfinished && form.call.takesUnfinished;
    if (form.call.eightBits != out.eightBits || form.call.groupValues != out.groupValues)
      out.eightBits = EightBits::kNever;
    if (&form != &forms.front())
      out.products.insert(out.products.end(), form.call.products.begin(), form.call.products.end());
  }
  // What one of them takes in its natural order has that.
  std::erase_if(out.lanes, [&](uint32_t slot) {
    return std::ranges::any_of(forms, [&](const GpuForm& form) {
      const auto has = [&](const std::vector<uint32_t>& list) { return std::ranges::find(list, slot) != list.end(); };
      return has(form.call.reads) && !has(form.call.lanes);
    });
  });
  if (mask)
    out.eightBits = EightBits::kNever; // what is cut does not count for the scales
  out.lower = [forms = std::move(forms), mask, writes = out.writes](GpuBuilder& builder) -> Status {
    for (const GpuForm& form : forms) {
      builder.setWhen(form.when);
      CORTIQ_RETURN_IF_ERROR(form.call.lower(builder));
    }
    builder.setWhen(std::nullopt);
    for (const uint32_t slot : writes)
      if (mask)
        CORTIQ_RETURN_IF_ERROR(builder.cutBehind(slot, *mask, forms.front().when.gate));
    return {};
  };
  return out;
}

GpuCall underGate(GpuCall call, uint32_t layer) {
  keepWhole(call);
  call.lower = [lower = std::move(call.lower), layer](GpuBuilder& builder) -> Status {
    artifact::GpuWhenT when;
    when.gate = layer;
    builder.setWhen(std::move(when));
    CORTIQ_RETURN_IF_ERROR(lower(builder));
    builder.setWhen(std::nullopt);
    return {};
  };
  return call;
}

} // namespace cortiq::compiler

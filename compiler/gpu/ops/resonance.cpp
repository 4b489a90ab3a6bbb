#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder& builder) {
  const artifact::ResonanceOpT& resonance = *op.AsResonanceOp();
  for (const auto* weights : {&resonance.means, &resonance.bases, &resonance.biases, &resonance.shells})
    if (std::string reason = refuseVectors(*weights, builder); !reason.empty())
      return reason;
  return {};
}

std::vector<uint32_t> lanes(const artifact::OpUnion& op) {
  return {op.AsResonanceOp()->input};
}

/// Four words an expert: where its mean, directions, bias and shell are.
std::vector<uint32_t> experts(const artifact::ResonanceOpT& resonance, GpuBuilder& builder) {
  std::vector<uint32_t> out;
  const size_t count = resonance.means.size(), open = count - resonance.shells.size();
  for (size_t e = 0; e < count; ++e) {
    out.push_back(builder.vector(resonance.means[e]));
    out.push_back(resonance.rank != 0 ? builder.vector(resonance.bases[e]) : 0);
    out.push_back(builder.vector(resonance.biases[e]));
    out.push_back(e >= open ? builder.vector(resonance.shells[e - open]) : kAbsent);
  }
  return out;
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::ResonanceOpT& resonance = *op.AsResonanceOp();
  constexpr uint32_t kLocal = 128;
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(
      d.module_, builder.module("resonance", {{kSpecLocal, kLocal},
                                              {kSpecCols, static_cast<uint32_t>(builder.elements(resonance.input))},
                                              {kSpecInOrder, builder.place(resonance.input).lanes ? 1u : 0u},
                                              {kSpecGroup, resonance.rank}}));
  d.groups = resonance.means.size();
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, resonance.input);
  builder.putSlot(d.push, kRowOut, resonance.out);
  d.push[kPushVector] = builder.words(experts(resonance, builder));
  builder.dispatch(std::move(d));
  return {};
}

} // namespace

const GpuOpRow kGpuResonance{artifact::Op::ResonanceOp, refuse, lower, lanes, false};

} // namespace cortiq::compiler

#include <algorithm>
#include <tuple>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

std::string refuse(const artifact::OpUnion&, const GpuBuilder&) {
  return {}; // column scales are left to the product that reads it
}

// The GPU's matrices read f32: what the CPU quantizes is copied.
Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::QuantizeOpT& quantize = *op.AsQuantizeOp();
  const uint64_t elements = builder.elements(quantize.input);
  for (const uint32_t slot : {quantize.out, quantize.act_out})
    if (slot != kAbsent)
      CORTIQ_RETURN_IF_ERROR(builder.copyBehind(builder.place(quantize.input), builder.place(slot), elements));
  return {};
}

} // namespace

const GpuOpRow kGpuQuantize{artifact::Op::QuantizeOp, refuse, lower, noLanes, true};

} // namespace cortiq::compiler

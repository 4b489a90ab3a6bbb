#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion&, const GpuBuilder&) {
  return {};
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::PlaceOpT& place = *op.AsPlaceOp();
  const uint64_t elements = place.from.size();
  const GpuPlace out = builder.resultPlace(place.out, place.act_out, elements);
  // A column that there is not is -1, which has all bits.
  const uint32_t from = builder.words({place.from.begin(), place.from.end()});
  CORTIQ_RETURN_IF_ERROR(dispatchValues(builder, "place", {builder.place(place.input), out, elements, nullptr, from},
                                        {{kSpecOutOrder, out.lanes ? 1u : 0u}}));
  return builder.finishResults(out, place.out, place.act_out, elements);
}

} // namespace

const GpuOpRow kGpuPlace{artifact::Op::PlaceOp, refuse, lower, noLanes, true, EightBits::kBehind};

} // namespace cortiq::compiler

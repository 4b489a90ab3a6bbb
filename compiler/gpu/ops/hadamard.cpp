#include <algorithm>
#include <cmath>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {
namespace {

using namespace formats;

std::string refuse(const artifact::OpUnion& op, const GpuBuilder&) {
  // A block stands in the memory of a workgroup.
  constexpr uint64_t kMostBlock = 8192;
  return op.AsHadamardOp()->block <= kMostBlock ? std::string() : "its blocks are too large for a workgroup";
}

/// One bit a column, thirty-two a word.
std::vector<uint32_t> signs(const artifact::HadamardOpT& hadamard) {
  std::vector<uint32_t> out(ceilDiv(hadamard.negative.size(), 4));
  for (size_t i = 0; i < hadamard.negative.size(); ++i)
    out[i / 4] |= uint32_t{hadamard.negative[i]} << i % 4 * 8;
  return out;
}

std::vector<uint32_t> lanes(const artifact::OpUnion& op) {
  return {op.AsHadamardOp()->input};
}

Status dispatchBlocks(const artifact::HadamardOpT& hadamard, const GpuPlace& out, bool eightBits, GpuBuilder& builder) {
  const uint64_t elements = builder.elements(hadamard.input);
  artifact::GpuDispatchT d;
  CORTIQ_ASSIGN_OR_RETURN(
      d.module_,
      builder.module("hadamard",
                     {{kSpecLocal, static_cast<uint32_t>(std::clamp<uint64_t>(hadamard.block / 2, 64, 256))},
                      {kSpecRows, static_cast<uint32_t>(elements)},
                      {kSpecGroup, static_cast<uint32_t>(hadamard.block)},
                      {kSpecScale, bitsOf(static_cast<float>(1 / std::sqrt(static_cast<double>(hadamard.block))))},
                      {kSpecInOrder, builder.place(hadamard.input).lanes ? 1u : 0u},
                      {kSpecOutOrder, out.lanes ? 1u : 0u},
                      {kSpecQuantOut, eightBits},
                      {kSpecInverse, hadamard.inverse},
                      {kSpecRounded, hadamard.half}}));
  d.groups = elements / hadamard.block;
  d.push.resize(kPushWords);
  builder.putSlot(d.push, kRowInput, hadamard.input);
  putRow(d.push, kRowOut, out);
  d.push[kPushVector] = builder.words(signs(hadamard));
  builder.dispatch(std::move(d));
  return {};
}

Status lower(const artifact::OpUnion& op, GpuBuilder& builder) {
  const artifact::HadamardOpT& hadamard = *op.AsHadamardOp();
  const uint64_t elements = builder.elements(hadamard.input);
  const bool one = hadamard.out == kAbsent || hadamard.act_out == kAbsent;
  const uint32_t result = hadamard.out != kAbsent ? hadamard.out : hadamard.act_out;
  // Whole groups of 32 need no step of their own for 8 bits.
  if (one && builder.eightBits(result) && hadamard.block % 32 == 0)
    return builder.makeResult(result, elements, 1, [&](const GpuPlace& out, bool eightBits) {
      return dispatchBlocks(hadamard, out, eightBits, builder);
    });
  const GpuPlace out = builder.resultPlace(hadamard.out, hadamard.act_out, elements);
  CORTIQ_RETURN_IF_ERROR(dispatchBlocks(hadamard, out, /*eightBits=*/false, builder));
  return builder.finishResults(out, hadamard.out, hadamard.act_out, elements);
}

} // namespace

const GpuOpRow kGpuHadamard{artifact::Op::HadamardOp, refuse, lower, lanes, true, EightBits::kBehind};

} // namespace cortiq::compiler

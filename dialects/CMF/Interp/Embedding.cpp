#include "dialects/CMF/Interp/OpTable.h"

namespace cortiq::cmf {

Status referenceEmbed(mlir::Operation* op, Frame& frame) {
  auto embed = llvm::cast<EmbedOp>(op);
  auto weight = embed.getWeight().getDefiningOp<WeightOp>();
  const WeightType type = weight.getType();
  CORTIQ_ASSIGN_OR_RETURN(const std::span<const uint8_t> payload, frame.payload(weight));
  const float scale = static_cast<float>(embed.getScale().convertToDouble());
  Array out(frame.ids.size(), type.getCols());
  for (int64_t t = 0; t < out.rows; ++t) {
    if (frame.ids[t] >= static_cast<uint64_t>(type.getRows()))
      continue; // zeros
    decodeRow(weight, payload, frame.ids[t], out.row(t));
    for (int64_t i = 0; i < out.cols; ++i)
      out.row(t)[i] *= scale;
  }
  frame.set(embed.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf

#include <algorithm>

#include "dialects/CMF/Interp/OpTable.h"

namespace cortiq::cmf {

Status referenceEmbed(mlir::Operation* op, Frame& frame) {
  auto embed = llvm::cast<EmbedOp>(op);
  const WeightType type = llvm::cast<WeightType>(embed.getWeight().getType());
  // Rows of one weight are decoded one by one; a mixture is there as a whole.
  WeightOp weight = frame.weightOf(embed.getWeight());
  std::span<const uint8_t> payload;
  std::shared_ptr<const std::vector<float>> mixed;
  if (weight) {
    CORTIQ_ASSIGN_OR_RETURN(payload, frame.payload(weight));
  } else {
    CORTIQ_ASSIGN_OR_RETURN(mixed, frame.weight(embed.getWeight()));
  }
  const float scale = static_cast<float>(embed.getScale().convertToDouble());
  Array out(frame.ids.size(), type.getCols());
  for (int64_t t = 0; t < out.rows; ++t) {
    if (frame.ids[t] >= static_cast<uint64_t>(type.getRows()))
      continue; // zeros
    if (weight)
      decodeRow(weight, payload, frame.ids[t], out.row(t));
    else
      std::copy_n(mixed->data() + int64_t{frame.ids[t]} * out.cols, out.cols, out.row(t));
    for (int64_t i = 0; i < out.cols; ++i)
      out.row(t)[i] *= scale;
  }
  frame.set(embed.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf

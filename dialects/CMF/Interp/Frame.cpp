#include "dialects/CMF/Interp/Frame.h"

namespace cortiq::cmf {

StatusOr<std::shared_ptr<const std::vector<float>>> WeightCache::decoded(WeightOp op) {
  if (auto it = kept_.find(op); it != kept_.end())
    return it->second;
  CORTIQ_ASSIGN_OR_RETURN(const std::span<const uint8_t> payload, source_.payload(op));
  CORTIQ_ASSIGN_OR_RETURN(std::vector<float> values, decodeWeight(op, payload));
  const uint64_t bytes = values.size() * sizeof(float);
  auto shared = std::make_shared<const std::vector<float>>(std::move(values));
  if (bytes <= left_) {
    left_ -= bytes;
    kept_[op] = shared;
  }
  return shared;
}

std::vector<float>& Frame::recurrent(mlir::Operation* op) {
  const RecurrentState state = *recurrentState(op);
  return memory_.recurrent.try_emplace(state.number, state.size).first->second;
}

namespace {

// The value that one skill gives for `v`, or the base's.
mlir::Value chosen(mlir::Value v, const formats::OverlaySelection& selection) {
  auto overlay = v.getDefiningOp<OverlayOp>();
  if (!overlay)
    return v;
  if (selection.shares.size() == 1)
    if (mlir::Value alternative = overlay.getAlternativeOf(selection.shares[0].skill))
      return alternative;
  return overlay.getBase();
}

// Whether a blend changes `v` at all.
bool isMixed(mlir::Value v, const formats::OverlaySelection& selection) {
  auto overlay = v.getDefiningOp<OverlayOp>();
  return overlay && selection.blends() && llvm::any_of(selection.shares, [&](const formats::OverlayShare& share) {
           return overlay.getAlternativeOf(share.skill) != nullptr;
         });
}

} // namespace

StatusOr<std::shared_ptr<const std::vector<float>>> WeightCache::decoded(mlir::Value v,
                                                                         const formats::OverlaySelection& selection) {
  if (!isMixed(v, selection))
    return decoded(chosen(v, selection).getDefiningOp<WeightOp>());
  auto overlay = v.getDefiningOp<OverlayOp>();
  std::vector<float> sum;
  for (const formats::OverlayShare& share : selection.shares) {
    mlir::Value part = overlay.getAlternativeOf(share.skill);
    CORTIQ_ASSIGN_OR_RETURN(const auto values, decoded((part ? part : overlay.getBase()).getDefiningOp<WeightOp>()));
    sum.resize(values->size());
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += share.weight * (*values)[i];
  }
  return std::make_shared<const std::vector<float>>(std::move(sum));
}

WeightOp Frame::weightOf(mlir::Value v) const {
  return isMixed(v, overlay_.selection) ? WeightOp() : chosen(v, overlay_.selection).getDefiningOp<WeightOp>();
}

void Frame::keepLastToken() {
  const int64_t tokens = static_cast<int64_t>(ids.size());
  for (auto& [value, array] : values_) {
    if (array.rows != tokens || !llvm::cast<mlir::ShapedType>(value.getType()).isDynamicDim(0))
      continue;
    array.data.erase(array.data.begin(), array.data.end() - array.cols);
    array.rows = 1;
  }
}

} // namespace cortiq::cmf

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

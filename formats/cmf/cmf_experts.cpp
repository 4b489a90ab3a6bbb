#include "formats/cmf/cmf_experts.h"

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr std::string_view kRouter = "mlp.gate.weight";

/// Experts of a layer: those present from 0 on, at most arch.moe.num_experts.
uint32_t count_experts(const CmfFile& file, const std::string& layer, uint32_t most) {
  uint32_t count = 0;
  while (count < most && file.find(layer + "mlp.experts." + std::to_string(count) + ".gate_proj.weight"))
    ++count;
  return count;
}

Status check_router(const CmfFile& file, const Tensor& router) {
  const std::string where = quote(file.path()) + ": the router " + quote(router.name);
  if (!file.arch().moe)
    return invalid(where + " stands in a model without arch.moe");
  const std::string layer = router.name.substr(0, router.name.size() - kRouter.size());
  const uint32_t experts = count_experts(file, layer, file.arch().moe->num_experts);
  if (experts == 0)
    return invalid(where + " has no experts: tensor " + quote(layer + "mlp.experts.0.gate_proj.weight") +
                   " is missing");
  const uint64_t rows = router.shape.size() == 2 ? router.shape[0] : 0;
  if (rows != experts)
    return invalid(where + " has shape " + shape_text(router.shape) + ", but its layer has " + std::to_string(experts) +
                   " experts");
  return {};
}

} // namespace

Status check_cmf_experts(const CmfFile& file) {
  for (const Tensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (name.starts_with("model.") && name.ends_with("." + std::string(kRouter)))
      CORTIQ_RETURN_IF_ERROR(check_router(file, tensor));
  }
  return {};
}

} // namespace cortiq::formats

#include "compiler/frontend/cmf/LinearMixers.h"

#include <algorithm>
#include <cmath>

#include "compiler/frontend/cmf/Weights.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfArch;
using formats::CmfFile;
using formats::CmfLayerType;
using formats::Tensor;

namespace {

// What no head count, width or number of taps reaches.
constexpr uint64_t kMaxHeads = 1 << 14;

// One layer of a file. Names are those behind the layer's own prefix.
class LinearMixer {
public:
  LinearMixer(const CmfFile& file, int64_t index, LayerDescription& layer, ModelDescription& model)
      : file_(file), arch_(file.arch()), index_(index), layer_(layer), model_(model) {}

  Status describe() {
    switch (arch_.layer_type(index_)) {
    case CmfLayerType::kShortConv:
      return describeShortConv();
    case CmfLayerType::kKda:
      return describeKda();
    default:
      break;
    }
    if (!arch_.linear_core)
      return invalid("layer " + std::to_string(index_) +
                     " is of type LinearAttention, but arch.linear_core is missing");
    return arch_.linear_core->kind == "gated_delta_net" ? describeGatedDelta() : describeVmfPhase();
  }

private:
  Status size(const char* field, std::optional<uint32_t> value, int64_t& out) const {
    if (!value)
      return invalid("layer " + std::to_string(index_) + " is of type " +
                     std::string(formats::cmf_layer_type_name(arch_.layer_type(index_))) + ", but arch." + field +
                     " is missing");
    if (*value == 0 || *value > kMaxHeads)
      return invalid(std::string("arch.") + field + " is " + std::to_string(*value) + ", which no model can have");
    out = *value;
    return {};
  }

  Status taps(int64_t& out) const {
    CORTIQ_RETURN_IF_ERROR(size("linear_conv_kernel_dim", arch_.linear_conv_kernel_dim, out));
    if (out < 2)
      return invalid("arch.linear_conv_kernel_dim is 1: a convolution over time has at least 2 taps");
    return {};
  }

  Status weight(const std::string& suffix, std::vector<int64_t> shape) {
    return addCmfWeight(file_, model_, layerName(index_, suffix), std::move(shape));
  }

  bool has(const std::string& suffix) const { return file_.find(layerName(index_, suffix)) != nullptr; }

  // The rows of a matrix whose height the header does not state.
  StatusOr<int64_t> rowsOf(const std::string& suffix) const {
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file_, layerName(index_, suffix)));
    const uint64_t rows = tensor->shape.size() == 2 ? tensor->shape[0] : 0;
    if (rows == 0 || rows > static_cast<uint64_t>(kMaxModelSize))
      return invalid("tensor " + formats::quote(tensor->name) + " has shape " + formats::shape_text(tensor->shape) +
                     ", which no projection can have");
    return static_cast<int64_t>(rows);
  }

  Status describeGatedDelta() {
    LinearAttention& sizes = model_.linear;
    int64_t width = 0;
    CORTIQ_RETURN_IF_ERROR(taps(width));
    CORTIQ_RETURN_IF_ERROR(size("linear_core.num_heads", arch_.linear_core->num_heads, sizes.valueHeads));
    CORTIQ_RETURN_IF_ERROR(size("linear_core.value_head_dim", arch_.linear_core->value_head_dim, sizes.valueDim));
    CORTIQ_RETURN_IF_ERROR(size("linear_num_key_heads", arch_.linear_num_key_heads, sizes.keyHeads));
    CORTIQ_RETURN_IF_ERROR(size("linear_key_head_dim", arch_.linear_key_head_dim, sizes.keyDim));
    if (sizes.valueHeads % sizes.keyHeads != 0)
      return invalid("arch.linear_core.num_heads is " + std::to_string(sizes.valueHeads) +
                     ", not a multiple of arch.linear_num_key_heads, which is " + std::to_string(sizes.keyHeads));
    layer_.mixer = Mixer::kGatedDelta;
    const int64_t values = sizes.valueHeads * sizes.valueDim, all = 2 * sizes.keyHeads * sizes.keyDim + values;
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.in_proj_qkv.weight", {all, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.in_proj_z.weight", {values, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.in_proj_a.weight", {sizes.valueHeads, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.in_proj_b.weight", {sizes.valueHeads, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.conv1d.weight", {all, width}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.A_log", {sizes.valueHeads}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.dt_bias", {sizes.valueHeads}));
    CORTIQ_RETURN_IF_ERROR(weight("linear_attn.norm.weight", {sizes.valueDim}));
    return weight("linear_attn.out_proj.weight", {model_.hidden, values});
  }

  Status describeShortConv() {
    int64_t width = 0;
    CORTIQ_RETURN_IF_ERROR(taps(width));
    layer_.mixer = Mixer::kShortConv;
    CORTIQ_RETURN_IF_ERROR(weight("short_conv.in_proj.weight", {3 * model_.hidden, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("short_conv.conv.weight", {model_.hidden, width}));
    return weight("short_conv.out_proj.weight", {model_.hidden, model_.hidden});
  }

  Status describeKda() {
    LinearAttention& sizes = model_.linear;
    int64_t width = 0;
    CORTIQ_RETURN_IF_ERROR(taps(width));
    CORTIQ_RETURN_IF_ERROR(size("linear_num_key_heads", arch_.linear_num_key_heads, sizes.valueHeads));
    CORTIQ_RETURN_IF_ERROR(size("linear_key_head_dim", arch_.linear_key_head_dim, sizes.keyDim));
    CORTIQ_RETURN_IF_ERROR(size("linear_value_head_dim", arch_.linear_value_head_dim, sizes.valueDim));
    sizes.keyHeads = sizes.valueHeads;
    sizes.decayBound = arch_.kda_gate_lower_bound;
    if (sizes.decayBound && !std::isfinite(*sizes.decayBound))
      return invalid("arch.kda_gate_lower_bound is not a finite number");
    layer_.mixer = Mixer::kKda;
    const int64_t keys = sizes.keyHeads * sizes.keyDim, values = sizes.valueHeads * sizes.valueDim;
    for (const auto& [part, rows] : {std::pair("q", keys), std::pair("k", keys), std::pair("v", values)}) {
      const std::string stem = std::string("kda_attn.") + part;
      CORTIQ_RETURN_IF_ERROR(weight(stem + "_proj.weight", {rows, model_.hidden}));
      CORTIQ_RETURN_IF_ERROR(weight(stem + "_conv1d.weight", {rows, width}));
    }
    CORTIQ_RETURN_IF_ERROR(weight("kda_attn.b_proj.weight", {sizes.valueHeads, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(lowRank("f", keys));
    if (has("kda_attn.g_proj.weight"))
      CORTIQ_RETURN_IF_ERROR(weight("kda_attn.g_proj.weight", {values, model_.hidden}));
    else
      CORTIQ_RETURN_IF_ERROR(lowRank("g", values));
    CORTIQ_RETURN_IF_ERROR(weight("kda_attn.dt_bias", {keys}));
    CORTIQ_RETURN_IF_ERROR(decay("kda_attn.A_log", {sizes.valueHeads, sizes.keyDim, keys}));
    CORTIQ_RETURN_IF_ERROR(weight("kda_attn.o_norm.weight", {sizes.valueDim}));
    return weight("kda_attn.o_proj.weight", {model_.hidden, values});
  }

  // b(a(x)), the width between the two being that of the tensors.
  Status lowRank(const std::string& part, int64_t rows) {
    const std::string a = "kda_attn." + part + "_a_proj.weight", b = "kda_attn." + part + "_b_proj.weight";
    CORTIQ_ASSIGN_OR_RETURN(const int64_t rank, rowsOf(a));
    CORTIQ_RETURN_IF_ERROR(weight(a, {rank, model_.hidden}));
    return weight(b, {rows, rank});
  }

  // A vector whose length is one of several.
  Status decay(const std::string& suffix, std::initializer_list<int64_t> lengths) {
    CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file_, layerName(index_, suffix)));
    const auto length = static_cast<int64_t>(tensor->rows() * tensor->cols());
    std::string known;
    for (int64_t candidate : lengths) {
      if (candidate == length)
        return addWeight(model_, layerName(index_, suffix), {tensor, {length}});
      known += (known.empty() ? "" : ", ") + std::to_string(candidate);
    }
    return invalid("tensor " + formats::quote(tensor->name) + " has shape " + formats::shape_text(tensor->shape) +
                   ", but the model's sizes ask for one of " + known + " values");
  }

  Status describeVmfPhase() {
    LinearAttention& sizes = model_.linear;
    const formats::CmfLinearCore& core = *arch_.linear_core;
    CORTIQ_RETURN_IF_ERROR(size("linear_core.num_heads", core.num_heads, sizes.valueHeads));
    CORTIQ_RETURN_IF_ERROR(size("linear_core.nphase", core.nphase, sizes.phases));
    CORTIQ_RETURN_IF_ERROR(size("linear_core.value_head_dim", core.value_head_dim, sizes.valueDim));
    const auto& corrected = core.phase_delta_layers;
    layer_.mixer = corrected && std::find(corrected->begin(), corrected->end(), index_) != corrected->end()
                       ? Mixer::kVmfPhaseDelta
                       : Mixer::kVmfPhase;
    const int64_t angles = sizes.valueHeads * sizes.phases, values = sizes.valueHeads * sizes.valueDim;
    CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.thq.weight", {angles, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.thk.weight", {angles, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.v_proj.weight", {values, model_.hidden}));
    CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.A_log", {2 * angles}));
    if (has("vmf_attn.k_gate.weight")) {
      CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.k_gate.weight", {sizes.valueHeads, model_.hidden}));
      if (has("vmf_attn.k_gate.bias"))
        CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.k_gate.bias", {sizes.valueHeads}));
    }
    if (const Tensor* conv = file_.find(layerName(index_, "vmf_attn.conv1d.weight"))) {
      if (conv->cols() < 2 || conv->cols() > kMaxHeads)
        return invalid("tensor " + formats::quote(conv->name) + " has shape " + formats::shape_text(conv->shape) +
                       ", which no convolution over time can have");
      CORTIQ_RETURN_IF_ERROR(weight("vmf_attn.conv1d.weight", {model_.hidden, static_cast<int64_t>(conv->cols())}));
    }
    return weight("vmf_attn.out_proj.weight", {model_.hidden, values});
  }

  const CmfFile& file_;
  const CmfArch& arch_;
  int64_t index_;
  LayerDescription& layer_;
  ModelDescription& model_;
};

} // namespace

bool hasCmfLinearMixer(const CmfFile& file, int64_t index) {
  const CmfLayerType type = file.arch().layer_type(static_cast<size_t>(index));
  return type == CmfLayerType::kLinearAttention || type == CmfLayerType::kShortConv || type == CmfLayerType::kKda;
}

Status describeCmfLinearMixer(const CmfFile& file, int64_t index, LayerDescription& layer, ModelDescription& model) {
  return LinearMixer(file, index, layer, model).describe();
}

} // namespace cortiq::compiler

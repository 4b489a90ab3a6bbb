#include "formats/cmf/cmf_arch_checks.h"

#include <algorithm>
#include <bit>
#include <set>

#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

bool has_layer(const CmfArch& arch, CmfLayerType type) {
  return std::find(arch.layer_types.begin(), arch.layer_types.end(), type) != arch.layer_types.end();
}

Status check_phase_sizes(const CmfLinearCore& core) {
  if (core.num_heads == 0 || core.nphase.value_or(0) == 0 || core.value_head_dim == 0)
    return invalid("arch.linear_core of kind " + quote(core.kind) +
                   " needs num_heads, nphase and value_head_dim above 0");
  return {};
}

Status check_phase_delta(const CmfArch& arch, const CmfLinearCore& core) {
  const std::vector<uint32_t> layers = core.phase_delta_layers.value_or(std::vector<uint32_t>());
  if (layers.empty())
    return invalid("arch.linear_core.phase_delta_layers is empty, but kind vmf_phase_delta_v1 lists its layers there");
  if (arch.layer_types.size() != arch.num_layers)
    return invalid("arch.layer_types has " + std::to_string(arch.layer_types.size()) + " entries for " +
                   std::to_string(arch.num_layers) + " layers");
  std::set<uint32_t> seen;
  for (const uint32_t layer : layers)
    if (layer >= arch.num_layers || arch.layer_type(layer) != CmfLayerType::kLinearAttention ||
        !seen.insert(layer).second)
      return invalid("arch.linear_core.phase_delta_layers names layer " + std::to_string(layer) +
                     ", which is out of range, repeated or no LinearAttention layer");
  return check_phase_sizes(core);
}

Status check_windows(const std::vector<uint32_t>& windows, uint32_t largest, const char* key) {
  for (const uint32_t w : windows)
    if (w == 0 || w > largest)
      return invalid("arch.anchor_core." + std::string(key) + " has " + std::to_string(w) +
                     ", expected 1 to window = " + std::to_string(largest));
  return {};
}

/// `affine` of a Prism record: one profile, with target names that are in `manifest` and not repeated.
Status check_prism_affine(const Json& json, const std::set<std::string>& manifest) {
  uint32_t version = 0;
  uint32_t group_size = 0;
  double correction = 0;
  std::string profile;
  std::vector<std::string> targets;
  JsonFields f(json, "arch.prism_hadamard.affine");
  f.required("version", version);
  f.required("profile", profile);
  f.required("group_size", group_size);
  f.required("correction_scale", correction);
  f.required("target_names", targets);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (version != 1 || profile != "q2tp_affine" || group_size != 32 || correction != 0.5 || targets.empty())
    return invalid("arch.prism_hadamard.affine is not the specified profile (version 1, q2tp_affine, groups of 32)");
  std::set<std::string> seen;
  for (const std::string& name : targets)
    if (!manifest.contains(name) || !seen.insert(name).second)
      return invalid("arch.prism_hadamard.affine.target_names has " + quote(name) +
                     ", which is repeated or in neither list of weights");
  return {};
}

} // namespace

Status check_linear_core(const CmfArch& arch) {
  if (!arch.linear_core)
    return {};
  const CmfLinearCore& core = *arch.linear_core;
  const bool linear_layers = has_layer(arch, CmfLayerType::kLinearAttention);
  if (core.kind == "vmf_phase_delta_v1")
    return check_phase_delta(arch, core);
  if (core.kind != "gated_delta_net" && core.kind != "vmf_phase")
    return invalid("arch.linear_core.kind is " + quote(core.kind) + ", which is not known");
  if (core.phase_delta_layers)
    return invalid("arch.linear_core.phase_delta_layers does not belong to kind " + quote(core.kind));
  return core.kind == "vmf_phase" && linear_layers ? check_phase_sizes(core) : Status();
}

Status check_anchor_core(const CmfArch& arch, const Json& json) {
  const bool layers = has_layer(arch, CmfLayerType::kBoundedAttention);
  const bool record = arch.has_family_block("anchor_core");
  if (layers != record)
    return invalid(layers ? "arch.layer_types has BoundedAttention layers, but arch.anchor_core is missing"
                          : "arch.anchor_core is present without any BoundedAttention layer");
  if (!record)
    return {};
  std::string kind, rope, scores;
  uint32_t window = 0;
  uint32_t sink = 0;
  std::optional<std::vector<uint32_t>> train_windows, group_windows;
  JsonFields f(*json.find("anchor_core"), "arch.anchor_core");
  f.required("kind", kind);
  f.required("window", window);
  f.required("sink", sink);
  f.required("rope", rope);
  f.required("sink_scores", scores);
  f.optional("train_windows", train_windows);
  f.optional("group_windows", group_windows);
  CORTIQ_RETURN_IF_ERROR(f.status());
  const bool v2 = kind == "swa_sink_v2";
  if (!v2 && kind != "swa_sink_v1")
    return invalid("arch.anchor_core.kind is " + quote(kind) + ", which is not known");
  if (rope != "relative_in_window" || scores != "nope" || f.present("far") != nullptr)
    return invalid("arch.anchor_core needs rope relative_in_window, sink_scores nope and no far");
  if (window == 0 || uint64_t{sink} + window > 65536)
    return invalid("arch.anchor_core has window " + std::to_string(window) + " and sink " + std::to_string(sink) +
                   ", expected a window of at least 1 and a sum of at most 65536");
  if (arch.layer_types.size() != arch.num_layers)
    return invalid("arch.layer_types has " + std::to_string(arch.layer_types.size()) + " entries for " +
                   std::to_string(arch.num_layers) + " layers");
  CORTIQ_RETURN_IF_ERROR(check_windows(train_windows.value_or(std::vector<uint32_t>()), window, "train_windows"));
  if (group_windows.has_value() != v2)
    return invalid("arch.anchor_core.group_windows belongs to kind swa_sink_v2 and only to it");
  if (!v2)
    return {};
  CORTIQ_RETURN_IF_ERROR(check_windows(*group_windows, window, "group_windows"));
  if (group_windows->size() != arch.num_kv_heads ||
      std::find(group_windows->begin(), group_windows->end(), window) == group_windows->end())
    return invalid("arch.anchor_core.group_windows needs one entry a KV head, the largest equal to window");
  return {};
}

Status check_prism(const CmfArch& arch, const Json& json) {
  if (!arch.has_family_block("prism_hadamard"))
    return {};
  if (arch.arch_name != "prism_hadamard_qwen35")
    return invalid("arch.prism_hadamard belongs to arch_name prism_hadamard_qwen35, not to " + quote(arch.arch_name));
  uint32_t version = 0;
  uint32_t block = 0;
  std::string transform, axis, sign_mode;
  std::vector<uint32_t> widths;
  std::vector<double> signs;
  std::vector<std::string> forward, inverse;
  bool grouped = false;
  bool rounded = false;
  JsonFields f(*json.find("prism_hadamard"), "arch.prism_hadamard");
  f.required("version", version);
  f.required("block_size", block);
  f.required("transform", transform);
  f.required("axis", axis);
  f.required("sign_mode", sign_mode);
  f.required("widths", widths);
  f.required("signs", signs);
  f.required("forward_weight_names", forward);
  f.required("inverse_weight_names", inverse);
  f.with_default("gdn_v_grouped", grouped);
  f.with_default("activation_f16", rounded);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (version != 1 || !std::has_single_bit(block) || transform != "normalized-sylvester-walsh-hadamard" ||
      axis != "input-last-dimension" || sign_mode != "explicit")
    return invalid(
        "arch.prism_hadamard is not the specified transform (version 1, explicit signs, a power-of-two block)");
  uint64_t total = 0;
  for (const uint32_t width : widths) {
    total += width;
    if (width % block != 0)
      return invalid("arch.prism_hadamard.widths has " + std::to_string(width) + ", no multiple of block_size " +
                     std::to_string(block));
  }
  const bool unit = std::all_of(signs.begin(), signs.end(), [](double s) { return s == 1 || s == -1; });
  if (!unit || signs.size() != total)
    return invalid("arch.prism_hadamard.signs needs " + std::to_string(total) + " entries, each 1 or -1");
  std::set<std::string> names(forward.begin(), forward.end());
  for (const std::string& name : inverse)
    if (!names.insert(name).second)
      return invalid("arch.prism_hadamard lists the weight " + quote(name) + " twice");
  const Json* affine = f.present("affine");
  return affine == nullptr ? Status() : check_prism_affine(*affine, names);
}

} // namespace cortiq::formats

#include "formats/cmf/cmf_overlay.h"

#include <algorithm>
#include <cmath>

#include "formats/cmf/json_fields.h"
#include "formats/codec/codec.h"

namespace cortiq::formats {
namespace {

constexpr std::string_view kSkillPrefix = "skill.";
// Where a replaced tensor's own name begins.
constexpr std::string_view kNameStarts[] = {".model.", ".lm_head."};

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// The bytes of standard base64 with padding; empty when it is none.
std::optional<std::vector<uint8_t>> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  while (text.ends_with('=') && text.size() % 4 != 2)
    text.remove_suffix(1);
  std::vector<uint8_t> out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((held += 6) >= 8) {
      held -= 8;
      out.push_back(static_cast<uint8_t>(bits >> held));
    }
  }
  return out;
}

/// `count` numbers of f16, little-endian, in base64.
StatusOr<std::vector<float>> read_halves(const std::string& text, uint64_t count, const std::string& where) {
  const auto bytes = decode_base64(text);
  if (!bytes || bytes->size() != 2 * count)
    return invalid(where + " is not the base64 of " + std::to_string(count) + " numbers of 16 bits");
  std::vector<float> out(count);
  for (uint64_t i = 0; i < count; ++i) {
    out[i] = f16_to_f32(static_cast<uint16_t>((*bytes)[2 * i] | (*bytes)[2 * i + 1] << 8));
    if (!std::isfinite(out[i]))
      return invalid(where + " has a value that is not finite");
  }
  return out;
}

StatusOr<SkillDescriptor> read_descriptor(const Json& json, const CmfArch& arch, const std::string& where) {
  SkillDescriptor out;
  std::string metric, mean, basis;
  std::optional<float> err_mean, err_std;
  JsonFields f(json, where);
  f.required("metric", metric);
  f.required("phi_layer", out.layer);
  f.required("mean", mean);
  f.required("basis", basis);
  f.required("rank", out.rank);
  f.optional("err_mean", err_mean);
  f.optional("err_std", err_std);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (metric != "mse" && metric != "mse_unit")
    return unsupported(where + ".metric is " + quote(metric) + ", expected mse or mse_unit");
  if (out.layer >= arch.num_layers || out.rank > arch.hidden_size)
    return invalid(where + " reads layer " + std::to_string(out.layer) + " in rank " + std::to_string(out.rank) +
                   ", but the model has " + std::to_string(arch.num_layers) + " layers of width " +
                   std::to_string(arch.hidden_size));
  out.unit = metric == "mse_unit";
  out.err_mean = err_mean.value_or(0);
  out.err_std = err_std.value_or(1);
  CORTIQ_ASSIGN_OR_RETURN(out.mean, read_halves(mean, arch.hidden_size, where + ".mean"));
  CORTIQ_ASSIGN_OR_RETURN(out.basis, read_halves(basis, uint64_t{out.rank} * arch.hidden_size, where + ".basis"));
  return out;
}

StatusOr<OverlaySkill> read_skill(const Json& record, const CmfSkillInfo& info, const CmfArch& arch, size_t index) {
  const std::string where = "skills[" + std::to_string(index) + "]";
  OverlaySkill out{info.id, info.name, {}, {}};
  JsonFields f(record, where);
  std::optional<std::string> task;
  f.optional("input_mask_task", task);
  CORTIQ_RETURN_IF_ERROR(f.status());
  out.task = task.value_or("");
  if (const Json* selection = f.present("selection")) {
    CORTIQ_ASSIGN_OR_RETURN(out.descriptor, read_descriptor(*selection, arch, where + ".selection"));
  }
  return out;
}

OverlayMask read_mask(const CmfMask& mask, const CmfArch& arch) {
  OverlayMask out;
  out.name = mask.name;
  out.fallback = mask.priority == CmfMaskPriority::kFallback;
  out.layers = arch.num_layers;
  out.ffn_rows = mask.ffn_rows;
  out.ffn_width = arch.intermediate_size;
  out.heads = arch.num_attention_heads;
  out.expert_count = mask.experts.empty() || !arch.moe ? 0 : arch.moe->num_experts;
  out.ffn.assign(mask.ffn.begin(), mask.ffn.end());
  out.head.assign(mask.heads.begin(), mask.heads.end());
  out.gates.assign(mask.gates.begin(), mask.gates.end());
  out.experts.assign(mask.experts.begin(), mask.experts.end());
  return out;
}

Status add_calibration(const JsonFields& header, OverlayCatalog& out) {
  const Json* json = header.present("routing");
  if (json == nullptr)
    return {};
  RoutingCalibration& calibration = out.calibration.emplace();
  JsonFields f(*json, "routing");
  f.required("temperature", calibration.temperature);
  f.required("novelty_theta", calibration.theta);
  return f.status();
}

/// Records that add experts or a table of texts replace no tensor, and those that are not active are not to be used.
bool is_selectable(const CmfSkillInfo& skill, const Json& record) {
  return skill.kind.empty() || (skill.kind == "ffn_replace" && record.value("status", "") == "active");
}

} // namespace

std::string skill_tensor_name(std::string_view id, std::string_view name) {
  return std::string(kSkillPrefix) + std::string(id) + "." + std::string(name);
}

std::vector<std::string> skill_ids(const CmfFile& file) {
  std::vector<std::string> ids;
  for (const CmfSkillInfo& skill : file.skills())
    ids.push_back(skill.id);
  for (const Tensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (!name.starts_with(kSkillPrefix))
      continue;
    const std::string_view rest = name.substr(kSkillPrefix.size());
    const bool known =
        std::any_of(ids.begin(), ids.end(), [&](const std::string& id) { return rest.starts_with(id + "."); });
    size_t end = rest.npos;
    for (std::string_view start : kNameStarts)
      end = std::min(end, rest.find(start));
    if (!known && end != rest.npos && end != 0)
      ids.emplace_back(rest.substr(0, end));
  }
  return ids;
}

StatusOr<OverlayCatalog> read_cmf_overlay(const CmfFile& file) {
  OverlayCatalog out;
  const JsonFields header(file.header(), "header");
  const std::vector<std::string> ids = skill_ids(file);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].empty() || ids[i] == "none" || ids[i] == "auto" || out.find_skill(ids[i]))
      return invalid("skills[" + std::to_string(i) + "].id is " + quote(ids[i]) +
                     ", which cannot name a skill or names two");
    if (i >= file.skills().size()) {
      out.skills.push_back({ids[i], {}, {}, {}});
      continue;
    }
    const Json& record = (*header.present("skills"))[i];
    if (!is_selectable(file.skills()[i], record))
      continue;
    CORTIQ_ASSIGN_OR_RETURN(OverlaySkill skill, read_skill(record, file.skills()[i], file.arch(), i));
    out.skills.push_back(std::move(skill));
  }
  CORTIQ_RETURN_IF_ERROR(add_calibration(header, out));
  if (file.masks())
    for (const CmfMask& mask : file.masks()->masks) {
      if (mask.name == "none" || out.find_mask(mask.name))
        return invalid("the masks section names " + quote(mask.name) +
                       ", which is no task's name or stands there twice");
      out.masks.push_back(read_mask(mask, file.arch()));
    }
  return out;
}

} // namespace cortiq::formats

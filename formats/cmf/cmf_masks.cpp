#include "formats/cmf/cmf_masks.h"

#include <cstring>
#include <string_view>

#include "formats/checked_math.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

uint32_t load32(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Byte sizes of a mask's areas. No product overflows: each factor is at most 2^31.
struct AreaSizes {
  uint64_t ffn_row, heads, gates, experts;

  explicit AreaSizes(const CmfArch& arch)
      : ffn_row(ceil_div(arch.intermediate_size, 8)), heads(arch.num_layers * ceil_div(arch.num_attention_heads, 8)),
        gates(ceil_div(arch.num_layers, 8)),
        experts(arch.moe ? arch.num_layers * ceil_div(arch.moe->num_experts, 8) : 0) {}
};

Status read_priority(const std::string& word, const std::string& where, CmfMaskPriority& out) {
  if (word == "Fallback")
    out = CmfMaskPriority::kFallback;
  else if (word == "Normal")
    out = CmfMaskPriority::kNormal;
  else if (word == "Primary")
    out = CmfMaskPriority::kPrimary;
  else
    return invalid(where + ".priority is " + quote(word) + ", expected Fallback, Normal or Primary");
  return {};
}

/// Cuts a blob into its areas; which of the two FFN sizes it has, its length tells.
Status cut_blob(std::span<const uint8_t> blob, const CmfArch& arch, bool experts, const std::string& where,
                CmfMask& out) {
  const AreaSizes sizes(arch);
  const uint64_t rest = sizes.heads + sizes.gates + (experts ? sizes.experts : 0);
  const uint64_t layers = arch.num_layers;
  const std::optional<uint64_t> virtual_layers = checked_mul(layers, arch.num_loops);
  const std::optional<uint64_t> once = checked_add(checked_mul(layers, sizes.ffn_row), rest);
  const std::optional<uint64_t> looped = checked_add(checked_mul(virtual_layers, sizes.ffn_row), rest);
  if (blob.size() != once && blob.size() != looped)
    return invalid(where + ".blob_len is " + std::to_string(blob.size()) + ", but the sizes in arch ask for " +
                   (once ? std::to_string(*once) : "more than 2^64") +
                   (looped != once && looped ? " or " + std::to_string(*looped) : ""));
  const auto take = [&](uint64_t bytes) {
    const std::span<const uint8_t> area = blob.first(bytes);
    blob = blob.subspan(bytes);
    return area;
  };
  out.ffn = take(blob.size() - rest);
  out.ffn_rows = sizes.ffn_row == 0 ? arch.num_layers : static_cast<uint32_t>(out.ffn.size() / sizes.ffn_row);
  out.heads = take(sizes.heads);
  out.gates = take(sizes.gates);
  out.experts = blob;
  return {};
}

Status read_mask(const Json& json, size_t index, std::span<const uint8_t> section, const CmfArch& arch, CmfMask& out) {
  const std::string where = "masks[" + std::to_string(index) + "]";
  std::optional<std::string> description;
  std::string priority;
  bool hot_pack = false;
  bool experts = false;
  uint64_t offset = 0;
  uint64_t length = 0;
  JsonFields f(json, where);
  f.required("task_id", out.task_id);
  f.required("name", out.name);
  f.optional("description", description);
  f.required("sparsity", out.sparsity);
  f.required("priority", priority);
  f.with_default("has_hot_pack", hot_pack);
  f.with_default("has_expert_fields", experts);
  f.required("blob_off", offset);
  f.required("blob_len", length);
  CORTIQ_RETURN_IF_ERROR(f.status());
  CORTIQ_RETURN_IF_ERROR(read_priority(priority, where, out.priority));
  out.description = description.value_or("");
  if (experts && !arch.moe)
    return invalid(where + " has expert fields, but the model has no arch.moe");
  if (!range_fits(offset, length, section.size()))
    return invalid(where + " lies at " + std::to_string(offset) + " + " + std::to_string(length) + ", past the " +
                   std::to_string(section.size()) + " bytes of the section");
  return cut_blob(section.subspan(offset, length), arch, experts, where, out);
}

} // namespace

StatusOr<CmfMasks> parse_cmf_masks(std::span<const uint8_t> section, const CmfArch& arch) {
  if (section.size() < 8)
    return invalid("the masks section has " + std::to_string(section.size()) + " bytes, fewer than its 8-byte head");
  const uint32_t count = load32(section, 0);
  const uint32_t meta_size = load32(section, 4);
  if (!range_fits(8, meta_size, section.size()))
    return invalid("the masks section's metadata (" + std::to_string(meta_size) + " bytes) ends past its end");
  const std::string_view text(reinterpret_cast<const char*>(section.data()) + 8, meta_size);
  CORTIQ_ASSIGN_OR_RETURN(const Json meta, parse_json(text, "the masks section's metadata"));
  CmfMasks out;
  JsonFields f(meta, "masks section");
  f.required("default_task", out.default_task);
  CORTIQ_RETURN_IF_ERROR(f.status());
  const Json* masks = f.present("masks");
  if (masks == nullptr || !masks->is_array())
    return invalid("the masks section's metadata lacks its array of masks");
  if (masks->size() != count)
    return invalid("the masks section's count of " + std::to_string(count) +
                   " disagrees with its metadata, which has " + std::to_string(masks->size()));
  for (size_t i = 0; i < masks->size(); ++i)
    CORTIQ_RETURN_IF_ERROR(read_mask((*masks)[i], i, section, arch, out.masks.emplace_back()));
  return out;
}

StatusOr<std::vector<CmfIndexEntry>> parse_cmf_index(std::span<const uint8_t> section) {
  if (section.size() < 8)
    return invalid("the index section has " + std::to_string(section.size()) + " bytes, fewer than its 8-byte head");
  const uint32_t entries = load32(section, 0);
  std::vector<CmfIndexEntry> out;
  uint64_t at = 8;
  for (uint32_t i = 0; i < entries; ++i) {
    const std::string where = "entry " + std::to_string(i) + " of the index section ends past its end";
    if (!range_fits(at, 16, section.size()))
      return invalid(where);
    const uint64_t groups = load32(section, at + 8);
    const uint64_t heads = load32(section, at + 12);
    if (!range_fits(at + 16, 2 * groups + heads, section.size()))
      return invalid(where);
    CmfIndexEntry& entry = out.emplace_back();
    entry.task_id = load32(section, at);
    entry.layer = load32(section, at + 4);
    at += 16;
    for (uint64_t g = 0; g < groups; ++g)
      entry.groups.push_back(static_cast<uint16_t>(section[at + 2 * g] | section[at + 2 * g + 1] << 8));
    const std::span<const uint8_t> indices = section.subspan(at + 2 * groups, heads);
    entry.heads.assign(indices.begin(), indices.end());
    // The padding behind the last entry may be missing: the next range check sees whether anything follows.
    at += ceil_div(2 * groups + heads, 4) * 4;
  }
  return out;
}

} // namespace cortiq::formats

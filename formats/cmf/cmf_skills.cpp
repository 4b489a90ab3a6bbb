// Skill records of both versions. Version 2 is strict: what a record announces and the tensors that stand under its
// name have to be the same, one to one.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "formats/cmf/cmf_extensions.h"
#include "formats/cmf/cmf_lookup.h"
#include "formats/cmf/hash64.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

constexpr std::array<std::string_view, 4> kReservedIds = {"backbone", "none", "auto", "@backbone"};
constexpr std::array<std::string_view, 4> kStatuses = {"quarantine", "active", "stale_regate", "retired"};
constexpr std::array<const char*, 7> kExpertParts = {
    "gate_proj.weight", "up_proj.weight", "down_proj.weight", "desc.mu", "desc.u", "desc.bias", "desc.shell"};

struct StateEffect {
  uint32_t first = 0;
  std::string change; ///< "switch" in the file
  uint64_t bytes = 0;
};

/// One record of version 2, as far as every kind has it.
struct Record {
  const Json* json = nullptr;
  std::string where, id, kind, status;
  std::vector<uint32_t> layers;
  StateEffect effect;

  bool has(const char* key) const { return json->contains(key) && !(*json)[key].is_null(); }
};

class SkillChecker {
public:
  explicit SkillChecker(const CmfFile& file) : file_(file), arch_(file.arch()) {}

  Status check() {
    const JsonFields header(file_.header(), "header");
    const Json* skills = header.present("skills");
    for (size_t i = 0; skills && i < skills->size(); ++i)
      CORTIQ_RETURN_IF_ERROR(check_record((*skills)[i], "skills[" + std::to_string(i) + "]"));
    return records_.empty() ? Status() : check_owners();
  }

private:
  Status check_record(const Json& json, const std::string& where) {
    JsonFields f(json, where);
    std::optional<std::vector<uint32_t>> layers;
    std::optional<std::string> kind;
    f.optional("layers", layers);
    f.optional("kind", kind);
    const Json* selection = f.present("selection");
    CORTIQ_RETURN_IF_ERROR(f.status());
    if (selection)
      CORTIQ_RETURN_IF_ERROR(check_cmf_selection(*selection, where + ".selection", arch_.hidden_size).status());
    if (!kind)
      return {};
    Record record;
    record.json = &json;
    record.where = where;
    record.kind = *kind;
    record.layers = layers.value_or(std::vector<uint32_t>());
    CORTIQ_RETURN_IF_ERROR(read_common(record));
    if (record.kind == "ffn_replace")
      CORTIQ_RETURN_IF_ERROR(check_replacement(record));
    else if (record.kind == "expert_append")
      CORTIQ_RETURN_IF_ERROR(check_experts(record));
    else if (record.kind == "lookup")
      CORTIQ_RETURN_IF_ERROR(check_table(record));
    else
      return unsupported(where + ".kind is " + quote(record.kind) + ", expected ffn_replace, expert_append or lookup");
    records_.push_back(std::move(record));
    return {};
  }

  Status read_common(Record& r) {
    JsonFields f(*r.json, r.where);
    f.required("id", r.id);
    f.required("status", r.status);
    const Json* bound = f.present("bound");
    const Json* effect = f.present("state_effect");
    CORTIQ_RETURN_IF_ERROR(f.status());
    const bool reserved = std::find(kReservedIds.begin(), kReservedIds.end(), r.id) != kReservedIds.end();
    if (r.id.empty() || r.id.find('.') != std::string::npos || reserved)
      return invalid(r.where + ".id is " + quote(r.id) + ", which no skill may be called");
    if (!ids_.insert(r.id).second)
      return invalid(r.where + ".id is " + quote(r.id) + ", which another record has too");
    if (std::find(kStatuses.begin(), kStatuses.end(), r.status) == kStatuses.end())
      return invalid(r.where + ".status is " + quote(r.status) +
                     ", expected quarantine, active, stale_regate or retired");
    if (!bound || !effect)
      return invalid(r.where + (bound ? ".state_effect" : ".bound") + " is missing");
    JsonFields e(*effect, r.where + ".state_effect");
    e.required("first_affected_layer", r.effect.first);
    e.required("switch", r.effect.change);
    e.required("state_bytes_added", r.effect.bytes);
    CORTIQ_RETURN_IF_ERROR(e.status());
    return check_bound(*bound, r.where + ".bound");
  }

  /// The genome that the record was made for is the one in the file.
  Status check_bound(const Json& bound, const std::string& where) const {
    const JsonFields header(file_.header(), "header");
    const Json* genome = header.present("genome");
    if (!genome)
      return invalid(where + " names a genome, and the header has none");
    for (const auto& [mine, its] :
         {std::pair("genome_id", "id"), {"generation", "generation"}, {"master_trunk_hash", "master_trunk_hash"}})
      if (!bound.is_object() || !bound.contains(mine) || bound[mine] != genome->value(its, Json()))
        return invalid(where + "." + mine + " is not the genome's");
    return {};
  }

  Status refuse_keys(const Record& r, std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (r.has(key))
        return invalid(r.where + "." + key + " does not belong to kind " + quote(r.kind));
    return {};
  }

  Status check_layers(const Record& r) const {
    std::set<uint32_t> seen;
    for (const uint32_t layer : r.layers)
      if (layer >= arch_.num_layers || !seen.insert(layer).second)
        return invalid(r.where + ".layers has " + std::to_string(layer) + " twice, or beyond the " +
                       std::to_string(arch_.num_layers) + " layers");
    return r.layers.empty() ? invalid(r.where + ".layers is empty") : Status();
  }

  Status check_effect(const Record& r, uint32_t first, const char* change) const {
    if (r.effect.first == first && r.effect.change == change && r.effect.bytes == 0)
      return {};
    return invalid(r.where + ".state_effect is not layer " + std::to_string(first) + ", " + change + ", 0 bytes");
  }

  //--- ffn_replace

  /// The layer of "model.layers.N.mlp.REST"; nothing for another name.
  std::optional<uint32_t> mlp_layer(std::string_view name) const {
    constexpr std::string_view kPrefix = "model.layers.";
    if (!name.starts_with(kPrefix))
      return std::nullopt;
    const size_t dot = name.find('.', kPrefix.size());
    if (dot == std::string_view::npos || !name.substr(dot).starts_with(".mlp."))
      return std::nullopt;
    const std::string_view digits = name.substr(kPrefix.size(), dot - kPrefix.size());
    uint32_t layer = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    return layer < arch_.num_layers && digits == std::to_string(layer) ? std::optional(layer) : std::nullopt;
  }

  Status check_override(const Record& r, const Json& json, const std::string& where, std::set<uint32_t>& layers) {
    std::string name, hash;
    JsonFields f(json, where);
    f.required("name", name);
    f.required("base_hash", hash);
    CORTIQ_RETURN_IF_ERROR(f.status());
    const std::optional<uint32_t> layer = mlp_layer(name);
    if (!layer)
      return invalid(where + ".name is " + quote(name) + ", which names no tensor of a feed-forward block");
    layers.insert(*layer);
    const std::string full = "skill." + r.id + "." + name;
    const Tensor* trunk = file_.find(name);
    const Tensor* tensor = file_.find(full);
    if (!trunk || !tensor)
      return invalid(where + ": tensor " + quote(trunk ? full : name) + " is missing");
    if (trunk->shape != tensor->shape)
      return invalid("tensor " + quote(full) + " has shape " + shape_text(tensor->shape) + ", what it replaces " +
                     shape_text(trunk->shape));
    if (!owned_.insert(tensor).second)
      return invalid(where + ".name is " + quote(name) + ", which stands there twice");
    const std::optional<uint64_t> base = parse_hash64(hash);
    if (!base)
      return invalid(where + ".base_hash is " + quote(hash) + ", not sixteen hexadecimal digits");
    const uint64_t stored = file_.stored_hash(static_cast<size_t>(trunk - file_.tensors().data()));
    if (file_.header()["genome"].value("encoding", Json()) == "f32" && *base != stored)
      return invalid(where + ".base_hash is not the hash of " + quote(name));
    return {};
  }

  Status check_replacement(const Record& r) {
    CORTIQ_RETURN_IF_ERROR(refuse_keys(r, {"experts", "lookup"}));
    const Json overrides = r.json->value("overrides", Json());
    if (!overrides.is_array() || overrides.empty())
      return invalid(r.where + ".overrides is no list of at least one tensor");
    std::set<uint32_t> layers;
    for (size_t i = 0; i < overrides.size(); ++i)
      CORTIQ_RETURN_IF_ERROR(
          check_override(r, overrides[i], r.where + ".overrides[" + std::to_string(i) + "]", layers));
    CORTIQ_RETURN_IF_ERROR(check_layers(r));
    if (std::set<uint32_t>(r.layers.begin(), r.layers.end()) != layers)
      return invalid(r.where + ".layers are not the layers that its overrides name");
    const uint32_t first = *layers.begin();
    // Every kind of layer keeps state, so that a switch is unseen only where none follows.
    const bool unseen = first + 1 == arch_.num_layers && arch_.num_loops == 1;
    const bool known = r.effect.change == "sequence_start" || (r.effect.change == "transparent" && unseen);
    return r.effect.first == first && known
               ? Status()
               : invalid(r.where + ".state_effect does not fit skills that begin in layer " + std::to_string(first));
  }

  //--- expert_append

  struct Growth {
    uint64_t experts = 0; ///< appended so far
    bool retired = false;
  };

  Status check_experts(const Record& r) {
    CORTIQ_RETURN_IF_ERROR(refuse_keys(r, {"overrides", "selection", "lookup"}));
    if (!arch_.moe || !arch_.moe->router_resonance)
      return invalid(r.where + " appends experts, which needs arch.moe.router_resonance");
    uint32_t count = 0;
    uint32_t rank = 0;
    double quantile = 0;
    const Json experts = r.json->value("experts", Json());
    JsonFields f(experts, r.where + ".experts");
    f.required("count", count);
    f.required("rank", rank);
    f.required("shell_quantile", quantile);
    CORTIQ_RETURN_IF_ERROR(f.status());
    if (count == 0 || !(quantile >= 0 && quantile <= 1))
      return invalid(r.where + ".experts has a count of 0 or a shell_quantile outside 0 to 1");
    CORTIQ_RETURN_IF_ERROR(check_layers(r));
    for (const uint32_t layer : r.layers) {
      Growth& growth = growth_[layer];
      if (growth.retired && r.status != "retired")
        return invalid(r.where + " appends to layer " + std::to_string(layer) + " behind a retired record");
      growth.retired = growth.retired || r.status == "retired";
      // Each must exist, so that a huge count ends at the first tensor that is missing.
      for (uint32_t i = 0; i < count; ++i)
        CORTIQ_RETURN_IF_ERROR(check_expert(r, layer, arch_.moe->num_experts + growth.experts + i, rank));
      growth.experts += count;
    }
    return check_effect(r, *std::min_element(r.layers.begin(), r.layers.end()), "sequence_start");
  }

  Status check_expert(const Record& r, uint32_t layer, uint64_t expert, uint32_t rank) {
    const std::string experts = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    for (const std::string_view part : kExpertParts) {
      if (part == "desc.u" && rank == 0)
        continue;
      const std::string name = "skill." + r.id + "." + experts + std::to_string(expert) + "." + std::string(part);
      const Tensor* tensor = file_.find(name);
      if (!tensor)
        return invalid(r.where + ": tensor " + quote(name) + " is missing");
      owned_.insert(tensor);
      const bool scalar = part == "desc.bias" || part == "desc.shell";
      const Tensor* first = scalar ? nullptr : file_.find(experts + "0." + std::string(part));
      if (!scalar && (!first || first->shape != tensor->shape))
        return invalid("tensor " + quote(name) + " has shape " + shape_text(tensor->shape) +
                       ", which is not that of the layer's expert 0");
      if (scalar)
        CORTIQ_RETURN_IF_ERROR(check_number(*tensor));
    }
    return {};
  }

  static Status check_number(const Tensor& tensor) {
    float value = NAN;
    if (tensor.codec && tensor.codec->id == CodecId::kF32 && tensor.shape == std::vector<uint64_t>{1})
      std::memcpy(&value, tensor.data.data(), sizeof value);
    return std::isfinite(value) ? Status() : invalid("tensor " + quote(tensor.name) + " is no single finite f32 value");
  }

  //--- lookup

  Status check_table(const Record& r) {
    CORTIQ_RETURN_IF_ERROR(refuse_keys(r, {"overrides", "layers", "experts"}));
    CORTIQ_RETURN_IF_ERROR(check_cmf_lookup(file_, r.json->value("lookup", Json()), r.id, r.where + ".lookup"));
    for (const char* part : {"keys.hash", "keys.entry", "entries.off", "text"})
      owned_.insert(file_.find("skill." + r.id + ".lookup." + part));
    return check_effect(r, 0, "transparent");
  }

  //--- ownership

  /// With records of version 2 in a file, no tensor of a skill stands there without one that names it.
  Status check_owners() const {
    constexpr std::string_view kPrefix = "skill.";
    std::set<std::string_view> first_version; // their ids may have dots
    for (const CmfSkillInfo& skill : file_.skills())
      if (skill.kind.empty())
        first_version.insert(skill.id);
    for (const Tensor& tensor : file_.tensors()) {
      const std::string_view name = tensor.name;
      bool owned = !name.starts_with(kPrefix) || owned_.contains(&tensor);
      for (size_t dot = name.find('.', kPrefix.size()); !owned && dot != std::string_view::npos;
           dot = name.find('.', dot + 1))
        owned = first_version.contains(name.substr(kPrefix.size(), dot - kPrefix.size()));
      if (!owned)
        return invalid("tensor " + quote(name) + " belongs to no skill record");
    }
    return {};
  }

  const CmfFile& file_;
  const CmfArch& arch_;
  std::vector<Record> records_;
  std::set<std::string> ids_;
  std::set<const Tensor*> owned_;
  std::map<uint32_t, Growth> growth_;
};

} // namespace

Status check_cmf_skills(const CmfFile& file) {
  return SkillChecker(file).check();
}

} // namespace cortiq::formats

#include "formats/cmf/cmf_header.h"

#include <algorithm>
#include <array>

#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

constexpr std::array kQuantTypes = {"Q8_ROW", "Q4_BLOCK", "Q8_2F", "VBIT", "BF16", "F16", "F32"};

/// Keys of a skill record that exist only together with `kind`.
constexpr std::array kSkillV2Keys = {"experts", "lookup", "overrides",       "bound", "state_effect",
                                     "status",  "gate",   "prompt_contract", "origin"};

/// A feature bit that is set exactly when the header has the content, and how to say what that is.
struct FeatureRow {
  CmfFeature bit;
  const char* content;
};

constexpr std::array kBoundFeatures = {
    FeatureRow{CmfFeature::kPrismHadamard, "arch.prism_hadamard"},
    FeatureRow{CmfFeature::kPrismAffine, "arch.prism_hadamard.affine"},
    FeatureRow{CmfFeature::kSkillsV2, "a skill record with a kind"},
    FeatureRow{CmfFeature::kRouterV2, "router"},
    FeatureRow{CmfFeature::kDecision, "an arch_name that starts with cortiq-decision-"},
    FeatureRow{CmfFeature::kBoundedState, "arch.anchor_core"},
    FeatureRow{CmfFeature::kGenome, "genome"},
    FeatureRow{CmfFeature::kBlockDiffusion, "arch.block_diffusion"},
};

void read_tokenizer_config(JsonFields& header, CmfHeader& out) {
  const Json* json = header.present("tokenizer_config");
  if (json == nullptr)
    return;
  CmfTokenizerConfig& config = out.tokenizer_config.emplace();
  JsonFields f(*json, "tokenizer_config");
  f.optional("chat_template", config.chat_template);
  f.with_default("eos_token_ids", config.eos_token_ids);
  f.optional("bos_token_id", config.bos_token_id);
  f.optional("pad_token_id", config.pad_token_id);
  header.fail(f.status());
}

void read_section_hashes(JsonFields& header, CmfHeader& out) {
  const Json* json = header.present("section_hashes");
  if (json == nullptr)
    return;
  JsonFields f(*json, "section_hashes");
  f.optional("masks", out.masks_hash);
  f.optional("vocab", out.vocab_hash);
  f.optional("index", out.index_hash);
  header.fail(f.status());
}

void read_shard(JsonFields& header, CmfHeader& out) {
  const Json* json = header.present("shard");
  if (json == nullptr)
    return;
  CmfShardInfo& shard = out.shard.emplace();
  JsonFields f(*json, "shard");
  f.required("no", shard.number);
  f.required("count", shard.count);
  header.fail(f.status());
}

Status read_skill(const Json& json, size_t index, CmfSkillInfo& out) {
  JsonFields f(json, "skills[" + std::to_string(index) + "]");
  std::optional<std::string> name, kind, base;
  f.required("id", out.id);
  f.optional("name", name);
  f.optional("kind", kind);
  f.optional("base_dir_hash", base);
  if (!kind)
    for (const char* key : kSkillV2Keys)
      if (f.present(key) != nullptr)
        f.fail(invalid(f.name(key) + " belongs to records with a kind, and this one has none"));
  out.name = name.value_or("");
  out.kind = kind.value_or("");
  out.base_dir_hash = base.value_or("");
  return f.status();
}

void read_skills(JsonFields& header, CmfHeader& out) {
  const Json* json = header.present("skills");
  if (json == nullptr)
    return;
  if (!json->is_array())
    return header.fail(invalid("skills is not an array"));
  for (size_t i = 0; i < json->size(); ++i)
    header.fail(read_skill((*json)[i], i, out.skills.emplace_back()));
}

Status check_segment(const Json& json, size_t index, uint64_t data_size) {
  const std::string where = "segments[" + std::to_string(index) + "]";
  std::string kind;
  uint64_t start = 0;
  uint64_t end = 0;
  JsonFields f(json, where);
  f.required("kind", kind);
  f.required("data_start", start);
  f.required("data_end", end);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (kind != "genome" && kind != "base" && kind != "skill")
    return invalid(where + ".kind is " + quote(kind) + ", expected genome, base or skill");
  if (start > end || end > data_size)
    return invalid(where + " covers " + std::to_string(start) + " to " + std::to_string(end) +
                   " of a data section of " + std::to_string(data_size) + " bytes");
  return {};
}

void check_segments(JsonFields& header, uint64_t data_size) {
  const Json* json = header.present("segments");
  if (json == nullptr)
    return;
  if (!json->is_array())
    return header.fail(invalid("segments is not an array"));
  for (size_t i = 0; i < json->size(); ++i)
    header.fail(check_segment((*json)[i], i, data_size));
}

uint32_t features_of(const JsonFields& header, const CmfHeader& out) {
  uint32_t bits = 0;
  const auto set_if = [&](bool present, CmfFeature bit) { bits |= present ? feature_mask(bit) : 0; };
  const auto any_skill = [&](auto member) {
    return std::any_of(out.skills.begin(), out.skills.end(),
                       [&](const CmfSkillInfo& s) { return !(s.*member).empty(); });
  };
  const CmfArch& arch = out.arch;
  const Json* json_arch = header.present("arch");
  const bool prism = arch.has_family_block("prism_hadamard");
  set_if(any_skill(&CmfSkillInfo::base_dir_hash), CmfFeature::kSkillFile);
  set_if(prism, CmfFeature::kPrismHadamard);
  set_if(prism && JsonFields(*json_arch->find("prism_hadamard"), "").present("affine") != nullptr,
         CmfFeature::kPrismAffine);
  set_if(any_skill(&CmfSkillInfo::kind), CmfFeature::kSkillsV2);
  set_if(header.present("router") != nullptr, CmfFeature::kRouterV2);
  set_if(arch.arch_name.starts_with("cortiq-decision-"), CmfFeature::kDecision);
  set_if(arch.has_family_block("anchor_core"), CmfFeature::kBoundedState);
  set_if(header.present("genome") != nullptr, CmfFeature::kGenome);
  set_if(arch.has_family_block("block_diffusion"), CmfFeature::kBlockDiffusion);
  return bits;
}

} // namespace

StatusOr<CmfHeader> parse_cmf_header(std::string_view text, uint64_t data_size) {
  CmfHeader out;
  CORTIQ_ASSIGN_OR_RETURN(Json json, parse_json(text, "the header"));
  out.json = std::make_shared<const Json>(std::move(json));
  JsonFields f(*out.json, "header");
  uint32_t version = 0;
  f.required("version", version);
  f.required("quant_type", out.quant_type);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (std::find(kQuantTypes.begin(), kQuantTypes.end(), out.quant_type) == kQuantTypes.end())
    return invalid("header.quant_type is " + quote(out.quant_type) + ", which is no quantization label");
  const auto arch = out.json->find("arch");
  if (arch == out.json->end())
    return invalid("header.arch is missing");
  CORTIQ_ASSIGN_OR_RETURN(out.arch, parse_cmf_arch(*arch));
  read_tokenizer_config(f, out);
  read_section_hashes(f, out);
  read_shard(f, out);
  read_skills(f, out);
  check_segments(f, data_size);
  if (out.shard && f.present("genome") != nullptr)
    f.fail(invalid("a genome file may not be sharded"));
  CORTIQ_RETURN_IF_ERROR(f.status());
  out.content_features = features_of(f, out);
  return out;
}

Status check_cmf_features(const CmfEnvelope& envelope, const CmfHeader& header) {
  for (const FeatureRow& row : kBoundFeatures) {
    const bool content = (header.content_features & feature_mask(row.bit)) != 0;
    if (envelope.has(row.bit) == content)
      continue;
    const std::string bit = "feature bit " + std::to_string(static_cast<int>(row.bit));
    return invalid(content ? bit + " is clear, but the header has " + row.content
                           : bit + " is set, but the header lacks " + row.content);
  }
  return {};
}

} // namespace cortiq::formats

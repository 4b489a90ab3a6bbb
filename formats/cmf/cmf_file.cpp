#include "formats/cmf/cmf_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/cmf/cmf_directory.h"
#include "formats/cmf/cmf_dtype.h"
#include "formats/cmf/cmf_extensions.h"
#include "formats/input_files.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

/// Layers that a header may announce without as many tensors: few enough to allocate for.
constexpr uint32_t kLayersWithoutQuestion = 1024;

std::string shard_tag(uint32_t number, uint32_t count) {
  char tag[40];
  std::snprintf(tag, sizeof tag, "-%05u-of-%05u.cmf", number, count);
  return tag;
}

/// What must be equal in all shards of a model with recurrent or bounded layers (1.9).
Status check_same_identity(const CmfHeader& first, const CmfHeader& other) {
  const CmfArch& a = first.arch;
  const CmfArch& b = other.arch;
  if (!a.linear_core && !b.linear_core && !a.has_family_block("anchor_core") && !b.has_family_block("anchor_core"))
    return {};
  const auto layers = [](const CmfLinearCore& core) {
    const std::vector<uint32_t> list = core.phase_delta_layers.value_or(std::vector<uint32_t>());
    return std::set<uint32_t>(list.begin(), list.end());
  };
  const auto same_core = [&](const CmfLinearCore& x, const CmfLinearCore& y) {
    return x.kind == y.kind && x.num_heads == y.num_heads && x.nphase == y.nphase &&
           x.value_head_dim == y.value_head_dim && layers(x) == layers(y);
  };
  const auto anchor = [](const CmfHeader& header) { return header.json->at("arch").value("anchor_core", Json()); };
  const bool cores = a.linear_core.has_value() == b.linear_core.has_value() &&
                     (!a.linear_core || same_core(*a.linear_core, *b.linear_core));
  const bool sizes =
      a.linear_conv_kernel_dim == b.linear_conv_kernel_dim && a.linear_num_key_heads == b.linear_num_key_heads &&
      a.linear_num_value_heads == b.linear_num_value_heads && a.linear_key_head_dim == b.linear_key_head_dim &&
      a.linear_value_head_dim == b.linear_value_head_dim;
  if (cores && sizes && a.layer_types == b.layer_types && anchor(first) == anchor(other))
    return {};
  return invalid("its recurrent or bounded layers are declared otherwise than in the first shard");
}

/// The tensors that a Prism record lists as affine; the header's checks hold its form.
std::vector<std::string> affine_names(const CmfHeader& header) {
  if (!header.arch.has_family_block("prism_hadamard"))
    return {};
  const Json& record = header.json->at("arch").at("prism_hadamard");
  const auto affine = record.find("affine");
  if (affine == record.end() || affine->is_null())
    return {};
  return affine->at("target_names").get<std::vector<std::string>>();
}

} // namespace

std::string cmf_shard_path(const std::string& first, uint32_t number, uint32_t count) {
  const std::string tag = shard_tag(1, count);
  if (!first.ends_with(tag))
    return "";
  return first.substr(0, first.size() - tag.size()) + shard_tag(number, count);
}

std::span<const uint8_t> CmfFile::section(size_t shard, const CmfEnvelope::Section& where) const {
  // An absent section may state any offset.
  return where.size == 0 ? std::span<const uint8_t>() : file_bytes(shard).subspan(where.offset, where.size);
}

StatusOr<CmfFile> CmfFile::open(const std::string& path) {
  CmfFile out;
  CORTIQ_RETURN_IF_ERROR(out.add_shard(path));
  CORTIQ_RETURN_IF_ERROR(out.read_overlay().with_prefix(quote(path)));
  CORTIQ_RETURN_IF_ERROR(out.open_siblings());
  CORTIQ_RETURN_IF_ERROR(out.index_tensors().with_prefix(quote(path)));
  CORTIQ_RETURN_IF_ERROR(
      mark_affine_tensors(out.tensors_, affine_names(out.shards_[0].header)).with_prefix(quote(path)));
  CORTIQ_RETURN_IF_ERROR(out.check_layer_count().with_prefix(quote(path)));
  for (const auto check : {check_cmf_genome, check_cmf_skills, check_cmf_router})
    CORTIQ_RETURN_IF_ERROR(check(out).with_prefix(quote(path)));
  return out;
}

Status CmfFile::add_shard(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  remember_input(path + ".sig"); // its signature belongs to it, whether or not anybody asks for it
  const std::string prefix = quote(path);
  StatusOr<CmfEnvelope> envelope = parse_cmf_envelope(file.bytes());
  if (!envelope.ok())
    return envelope.status().with_prefix(prefix);
  shards_.push_back({std::move(file), *envelope, {}});
  const size_t index = shards_.size() - 1;
  Shard& shard = shards_.back();

  const std::span<const uint8_t> text = section(index, shard.envelope.header);
  StatusOr<CmfHeader> header =
      parse_cmf_header({reinterpret_cast<const char*>(text.data()), text.size()}, shard.envelope.data.size);
  if (!header.ok())
    return header.status().with_prefix(prefix);
  shard.header = *std::move(header);
  CORTIQ_RETURN_IF_ERROR(check_cmf_features(shard.envelope, shard.header).with_prefix(prefix));

  StatusOr<CmfDirectory> directory = parse_cmf_directory(
      section(index, shard.envelope.directory), section(index, shard.envelope.data), shard.envelope.data.offset);
  if (!directory.ok())
    return directory.status().with_prefix(prefix);
  for (Tensor& tensor : directory->tensors) {
    tensor.file = static_cast<uint32_t>(index);
    tensors_.push_back(std::move(tensor));
  }
  hashes_.insert(hashes_.end(), directory->hashes.begin(), directory->hashes.end());
  return {};
}

Status CmfFile::open_siblings() {
  const std::optional<CmfShardInfo> first = shards_[0].header.shard;
  if (!first)
    return {};
  const std::string where = quote(path());
  if (first->count == 0 || first->number == 0 || first->number > first->count)
    return invalid(where + ": states that it is shard " + std::to_string(first->number) + " of " +
                   std::to_string(first->count));
  if (first->number != 1)
    return invalid(where + ": is shard " + std::to_string(first->number) + " of " + std::to_string(first->count) +
                   "; open the first, whose name ends in " + shard_tag(1, first->count));
  if (cmf_shard_path(path(), 1, first->count).empty())
    return invalid(where + ": is the first of " + std::to_string(first->count) +
                   " shards, but its name does not end in " + shard_tag(1, first->count));
  for (uint32_t k = 2; k <= first->count; ++k) {
    const std::string sibling = cmf_shard_path(path(), k, first->count);
    const std::string which = where + ": shard " + std::to_string(k) + " of " + std::to_string(first->count);
    std::error_code ignored; // what cannot be examined is told by its reader
    Status status = add_shard(sibling);
    if (!status.ok())
      return status.with_prefix(
          std::filesystem::exists(std::filesystem::symlink_status(sibling, ignored)) ? which : which + " is missing");
    const CmfHeader& header = shards_.back().header;
    if (!header.shard || header.shard->number != k || header.shard->count != first->count)
      return invalid(quote(sibling) + ": does not state that it is shard " + std::to_string(k) + " of " +
                     std::to_string(first->count));
    CORTIQ_RETURN_IF_ERROR(check_same_identity(shards_[0].header, header).with_prefix(quote(sibling)));
  }
  return {};
}

Status CmfFile::read_overlay() {
  if (const CmfEnvelope::Section& masks = envelope().masks; masks.size > 0) {
    CORTIQ_ASSIGN_OR_RETURN(masks_, parse_cmf_masks(section(0, masks), arch()));
  }
  if (const CmfEnvelope::Section& index = envelope().index; index.size > 0) {
    CORTIQ_ASSIGN_OR_RETURN(index_, parse_cmf_index(section(0, index)));
  }
  return {};
}

Status CmfFile::index_tensors() {
  by_name_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!by_name_.emplace(tensors_[i].name, i).second)
      return invalid("the tensor " + quote(tensors_[i].name) + " stands in two shards");
  return {};
}

Status CmfFile::check_layer_count() const {
  if (arch().num_layers <= std::max<uint64_t>(kLayersWithoutQuestion, tensors_.size()))
    return {};
  return invalid("arch.num_layers is " + std::to_string(arch().num_layers) + ", far beyond the " +
                 std::to_string(tensors_.size()) + " tensors present");
}

const Tensor* CmfFile::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

Status CmfFile::check_runnable() const {
  struct Row {
    CmfFeature bit;
    const char* what;
  };
  static constexpr Row kRefused[] = {
      {CmfFeature::kSkillFile, "is a standalone skill file: attach it to its base model first"},
      {CmfFeature::kDecision, "is a decision model, not a language model"},
      {CmfFeature::kBlockDiffusion, "is a block-diffusion model, which cannot be decoded token by token"},
      {CmfFeature::kRouterV2, "has a router of version 2, which this version does not run"},
  };
  const uint32_t features = envelope().required_features | shards_[0].header.content_features;
  for (const Row& row : kRefused)
    if ((features & feature_mask(row.bit)) != 0)
      return unsupported(quote(path()) + " " + row.what);
  for (const std::string& block : arch().family_blocks)
    if (block != "anchor_core" && block != "prism_hadamard")
      return unsupported(quote(path()) + " has arch." + block +
                         ", a layer stack of its own that this version does not run");
  return {};
}

} // namespace cortiq::formats

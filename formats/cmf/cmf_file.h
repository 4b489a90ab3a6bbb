#pragma once

// Reader of CMF v2 model files (single or sharded). Everything that CmfFile hands out was checked against the file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/cmf/cmf_arch.h"
#include "formats/cmf/cmf_envelope.h"
#include "formats/cmf/cmf_header.h"
#include "formats/cmf/cmf_masks.h"
#include "formats/json.h"
#include "formats/mapped_file.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// An opened CMF model: one file, or shard 1 with all its siblings.
class CmfFile {
public:
  /// Opens and checks `path`. Opening shard 1 opens the others, which lie in the same folder. Hashes are not computed
  /// here: see verify(). Every failure is one sentence that starts with the file's name.
  static StatusOr<CmfFile> open(const std::string& path);

  const std::string& path() const { return shards_[0].file.path(); }
  /// Number of files: 1, or the shard count.
  size_t file_count() const { return shards_.size(); }
  const std::string& file_path(size_t i) const { return shards_[i].file.path(); }
  std::span<const uint8_t> file_bytes(size_t i) const { return shards_[i].file.bytes(); }
  const CmfEnvelope& envelope(size_t shard = 0) const { return shards_[shard].envelope; }

  /// The header of shard 1 as parsed; keys that the accessors below do not cover are read here.
  const Json& header() const { return *shards_[0].header.json; }
  const CmfArch& arch() const { return shards_[0].header.arch; }
  const std::string& quant_type() const { return shards_[0].header.quant_type; }
  const std::optional<CmfTokenizerConfig>& tokenizer_config() const { return shards_[0].header.tokenizer_config; }
  const std::vector<CmfSkillInfo>& skills() const { return shards_[0].header.skills; }
  /// The tokenizer.json bytes; empty when the file has no vocab section.
  std::span<const uint8_t> vocab() const { return section(0, envelope().vocab); }
  /// The masks section, if there is one.
  const std::optional<CmfMasks>& masks() const { return masks_; }
  /// The sparse index, if there is one: for showing, nothing executes it.
  const std::optional<std::vector<CmfIndexEntry>>& index() const { return index_; }

  /// All tensors: shard by shard, each in directory order. Skills' replacements are among them ("skill.ID.NAME").
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// The tensor named `name`, or null.
  const Tensor* find(std::string_view name) const;
  /// The hash that the directory states for tensors()[i]; 0 = absent.
  uint64_t stored_hash(size_t i) const { return hashes_[i]; }

  /// Recomputes every stored hash (1.7); the failure names the first section or tensor that differs.
  Status verify() const;

  /// Refuses what is a sound CMF but no language model that this project runs: a standalone skill file, a decision
  /// file, block diffusion, bounded state, Prism, genomes, skills and routers of version 2, families with a stack of
  /// their own.
  Status check_runnable() const;

private:
  struct Shard {
    MappedFile file;
    CmfEnvelope envelope;
    CmfHeader header;
  };
  CmfFile() = default;

  std::span<const uint8_t> section(size_t shard, const CmfEnvelope::Section& where) const;
  Status add_shard(const std::string& path);
  Status open_siblings();
  Status read_overlay();
  Status index_tensors();
  Status check_layer_count() const;
  Status verify_shard(size_t shard) const;

  std::vector<Shard> shards_;
  std::optional<CmfMasks> masks_;
  std::optional<std::vector<CmfIndexEntry>> index_;
  std::vector<Tensor> tensors_;
  std::vector<uint64_t> hashes_;
  std::unordered_map<std::string_view, size_t> by_name_; ///< views into tensors_, which does not change after open
};

/// The file name of shard `number` (1-based) given that of shard 1; empty when `first` lacks "-00001-of-NNNNN.cmf".
std::string cmf_shard_path(const std::string& first, uint32_t number, uint32_t count);

} // namespace cortiq::formats

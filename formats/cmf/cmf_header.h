#pragma once

// The header JSON of a CMF file (specification 1.4): the parts that a reader interprets.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/cmf/cmf_arch.h"
#include "formats/cmf/cmf_envelope.h"
#include "formats/json.h"
#include "formats/status.h"

namespace cortiq::formats {

/// The chat bundle (5.3).
struct CmfTokenizerConfig {
  std::optional<std::string> chat_template;
  std::vector<uint32_t> eos_token_ids;
  std::optional<uint32_t> bos_token_id;
  std::optional<uint32_t> pad_token_id;
};

/// What is needed of a skill record to list it; the whole record stands in the header's "skills".
struct CmfSkillInfo {
  std::string id;
  std::string name;
  std::string kind;          ///< empty for version 1 records
  std::string base_dir_hash; ///< set in a standalone skill file
};

/// Which shard of how many; the first is 1.
struct CmfShardInfo {
  uint32_t number = 0;
  uint32_t count = 0;
};

struct CmfHeader {
  std::shared_ptr<const Json> json; ///< the whole header
  CmfArch arch;
  std::string quant_type;
  std::optional<CmfTokenizerConfig> tokenizer_config;
  std::vector<CmfSkillInfo> skills;
  std::optional<CmfShardInfo> shard;
  /// Hexadecimal hash64 of a section's bytes; absent = not stated.
  std::optional<std::string> masks_hash, vocab_hash, index_hash;
  /// Feature bits that this content calls for, of those that bind both ways (6 and 7 to 15).
  uint32_t content_features = 0;
};

/// Parses and checks a header; `data_size` is the length of the data section, which segments must stay inside.
StatusOr<CmfHeader> parse_cmf_header(std::string_view text, uint64_t data_size);

/// Refuses a header whose content disagrees with the envelope's feature bits (1.2).
Status check_cmf_features(const CmfEnvelope& envelope, const CmfHeader& header);

} // namespace cortiq::formats

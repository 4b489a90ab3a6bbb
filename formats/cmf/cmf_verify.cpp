// CmfFile::verify: every hash that a CMF file states, recomputed (specification 1.7).

#include <optional>

#include "formats/cmf/cmf_file.h"
#include "formats/cmf/hash64.h"
#include "formats/page_release.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

/// 0 stands for "no hash stored", which is accepted.
Status compare(const std::string& what, uint64_t stored, std::span<const uint8_t> bytes) {
  if (stored == 0)
    return {};
  const uint64_t actual = hash64(bytes);
  if (actual == stored)
    return {};
  return invalid(what + " does not match its hash (stored " + hex64(stored) + ", actual " + hex64(actual) + ")");
}

Status compare_section(const char* name, const std::optional<std::string>& stored, std::span<const uint8_t> bytes) {
  if (!stored || bytes.empty())
    return {};
  const std::optional<uint64_t> hash = parse_hash64(*stored);
  if (!hash)
    return invalid(std::string("section_hashes.") + name + " is " + quote(*stored) +
                   ", not sixteen hexadecimal digits");
  return compare(std::string("the ") + name + " section", *hash, bytes);
}

} // namespace

Status CmfFile::verify_shard(size_t shard) const {
  const CmfEnvelope& where = envelope(shard);
  const CmfHeader& header = shards_[shard].header;
  CORTIQ_RETURN_IF_ERROR(compare("the header section", where.header_hash, section(shard, where.header)));
  CORTIQ_RETURN_IF_ERROR(compare("the directory section", where.directory_hash, section(shard, where.directory)));
  CORTIQ_RETURN_IF_ERROR(compare_section("masks", header.masks_hash, section(shard, where.masks)));
  CORTIQ_RETURN_IF_ERROR(compare_section("vocab", header.vocab_hash, section(shard, where.vocab)));
  CORTIQ_RETURN_IF_ERROR(compare_section("index", header.index_hash, section(shard, where.index)));
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].file == shard) {
      CORTIQ_RETURN_IF_ERROR(compare("the payload of " + quote(tensors_[i].name), hashes_[i], tensors_[i].data));
      release_pages(tensors_[i].data);
    }
  return {};
}

Status CmfFile::verify() const {
  for (size_t i = 0; i < shards_.size(); ++i)
    CORTIQ_RETURN_IF_ERROR(verify_shard(i).with_prefix(quote(file_path(i))));
  return {};
}

} // namespace cortiq::formats

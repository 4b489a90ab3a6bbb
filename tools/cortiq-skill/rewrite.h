#pragma once

// What the commands that write have in common.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "formats/cmf/cmf_file.h"
#include "formats/cmf/cmf_writer.h"

namespace cortiq::skill {

/// What identifies the model that a skill was cut from: the hash of its directory's bytes, as 16 digits.
std::string base_key(const formats::CmfFile& file);

/// The bytes of the masks section; empty without one.
std::span<const uint8_t> masks_section(const formats::CmfFile& file);

/// The index of record `id` in header.skills; none for a skill that only its tensors name. Fails where there is no such
/// skill, with a list of what there is.
StatusOr<std::optional<size_t>> record_of(const formats::CmfFile& file, const std::string& id);

/// The mask that the skill of record `record` runs with; empty without one.
std::string task_of(const formats::CmfFile& file, size_t record);

/// The names that the tensors of skill `id` replace, by index into file.tensors(). Those of skill "a.b" are not a's.
std::map<size_t, std::string> replacements_of(const formats::CmfFile& file, const std::string& id);

/// Refuses an output that is one of the model's files.
Status check_no_part(const formats::CmfFile& file, const std::string& out);

/// The header for a new file: without shards, and without the section hashes that the writer makes.
nlohmann::json plain_header(const formats::CmfFile& file);

/// Adds `tensor` under `name`. Its bytes stay those of the file that it came from.
void copy_tensor(formats::CmfWriter& writer, const formats::Tensor& tensor, std::string name);

/// Refuses genomes and standalone skill files where a base model is asked for.
Status check_base(const formats::CmfFile& file);

} // namespace cortiq::skill

#pragma once

// The records that extend a model: genome and lineage, skills, the router policy. CmfFile::open holds them against the
// tensors; messages are sentences without the file's name. Private to the CMF reader.

#include <string>

#include "formats/cmf/cmf_file.h"
#include "formats/json.h"
#include "formats/status.h"

namespace cortiq::formats {

/// The genome record and the lineage (4.8). The trunk hash is not recomputed: nothing here runs or extends a genome.
Status check_cmf_genome(const CmfFile& file);

/// Skill records: the descriptors of both versions (4.3); of version 2 the record, and the tensors of each kind (4.6).
Status check_cmf_skills(const CmfFile& file);

/// The router policy of version 2 (4.6).
Status check_cmf_router(const CmfFile& file);

/// A selection descriptor: its metric and layer, and vectors as long as the model is wide.
struct CmfSelection {
  std::string metric;
  uint32_t phi_layer = 0;
};
StatusOr<CmfSelection> check_cmf_selection(const Json& json, const std::string& where, uint32_t hidden_size);

} // namespace cortiq::formats

#pragma once

// The signatures of a whole model, each of its files with its own.

#include <optional>
#include <string>

#include "formats/cmf/cmf_file.h"
#include "formats/cmf/signature.h"

namespace cortiq::formats {

/// Holds every file of `file` that has a signature against it, and all of them to one signer; with `required` each has
/// to be signed with that key. Gives a clause for people: "signed by 0d50…", "2 of 3 shards signed by …", "not signed".
/// What is hashed are the bytes that were mapped; files without signatures are not read for this.
StatusOr<std::string> check_cmf_signatures(const CmfFile& file, const std::optional<SignerKey>& required);

} // namespace cortiq::formats

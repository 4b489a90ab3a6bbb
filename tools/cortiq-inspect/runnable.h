#pragma once

// What of a file this installation can run, found out before anyone tries.

#include <optional>
#include <string>
#include <vector>

#include "formats/json.h"
#include "tools/cortiq-inspect/model_file.h"

namespace cortiq::inspect {

/// One thing that a file may be used for.
struct Capability {
  const char* name;            ///< "model", "text", "chat"
  std::optional<bool> present; ///< empty: it cannot be told here
  std::string reason;          ///< a sentence without its full stop; may be empty where present
};

/// "model": whether cortiq-compile takes the file, asked of the program itself, so that the answer is the one that a
/// user would get; "text": whether prompts may be text or have to be token ids; "chat": whose chat template is used.
std::vector<Capability> capabilities_of(const ModelFile& model);

/// The same of a compiled artifact; "model" then means on this machine.
std::vector<Capability> capabilities_of_artifact(const std::string& path);

/// "yes", "no, because …" or "unknown, because …".
std::string describe(const Capability& capability);

/// {"model": {"runnable": true|false|null, "because": "…"}, …}
formats::Json capabilities_json(const std::vector<Capability>& capabilities);

} // namespace cortiq::inspect

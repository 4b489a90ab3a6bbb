#pragma once

// What the list mode shows of a model file, whichever container it is in.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/json.h"
#include "formats/tensor.h"
#include "tools/cortiq-inspect/runnable.h"

namespace cortiq::formats {
class CmfFile;
class GgufFile;
} // namespace cortiq::formats

namespace cortiq::inspect {

struct Listing {
  std::string format;       ///< "CMF 2", "GGUF 3"
  std::string architecture; ///< empty if the file names none
  std::vector<std::string> files;
  uint64_t file_bytes = 0; ///< of all files
  formats::Json metadata;  ///< an object; long arrays are cut (see GGUF) and texts are whole
  std::vector<Capability> runnable;
};

Listing list_cmf(const formats::CmfFile& file);
Listing list_gguf(const formats::GgufFile& file);

} // namespace cortiq::inspect

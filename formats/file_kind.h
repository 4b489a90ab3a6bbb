#pragma once

// Which reader a file belongs to, told by its first bytes.

#include <cstdint>
#include <span>
#include <string>

#include "formats/status.h"

namespace cortiq::formats {

enum class FileKind { kCmf, kGguf, kArtifact };

/// Looks at the first bytes of `path`: CMF, GGUF or (any ELF file) artifact. Fails with one sentence that shows the
/// bytes found for everything else, and for files that cannot be read.
StatusOr<FileKind> detect_file_kind(const std::string& path);

} // namespace cortiq::formats

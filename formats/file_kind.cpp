#include "formats/file_kind.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "formats/mapped_file.h"
#include "formats/quote.h"

namespace cortiq::formats {

StatusOr<FileKind> detect_file_kind(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.empty())
    return invalid(quote(path) + " is empty: shorter than the 128-byte CMF envelope or any other header");
  if (text.starts_with("CMF"))
    return FileKind::kCmf;
  if (text.starts_with("GGUF"))
    return FileKind::kGguf;
  if (text.starts_with("\x7F"
                       "ELF"))
    return FileKind::kArtifact;
  std::string found;
  for (size_t i = 0; i < std::min<size_t>(4, text.size()); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, " %02x", static_cast<uint8_t>(text[i]));
    found += byte;
  }
  return invalid(quote(path) + " has the wrong magic: it starts with" + found +
                 " and is neither CMF (43 4d 46 01), GGUF (47 47 55 46) nor an artifact (7f 45 4c 46)");
}

} // namespace cortiq::formats

#include <algorithm>
#include <array>
#include <cassert>

#include "formats/codec/codec.h"
#include "formats/codec/codec_rows.h"

namespace cortiq::formats {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_words(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

template <class Predicate>
const Codec* find_row(Predicate matches) {
  const std::span<const Codec> table = codec_table();
  const auto row = std::find_if(table.begin(), table.end(), matches);
  return row == table.end() ? nullptr : &*row;
}

} // namespace

std::span<const Codec> codec_table() {
  // A local: rows of other files are complete by the first call, whatever the order of static initialisation.
  static const std::array table = {
      // plain
      kF32Codec,
      kF16Codec,
      kBF16Codec,
      kU8Codec,
      kU32Codec,
      kU64Codec,
      // CMF
      kQ8RowCodec,
      kQ82FCodec,
      kQ4BlockCodec,
      kQ4TiledCodec,
      kQ4TPCodec,
      kVBitCodec,
      kVBitROCodec,
      kQ1Codec,
      kQ1SCodec,
      kQ1TCodec,
      kQ2TPCodec,
      kQ2TPAffineCodec,
      kBLRCodec,
      kQ1GCodec,
      kMXFP4Codec,
      // factors of blr
      kBLRUCodec,
      kBLRVCodec,
      // GGUF
      kQ40Codec,
      kQ41Codec,
      kQ50Codec,
      kQ51Codec,
      kQ80Codec,
      kQ4KCodec,
      kQ5KCodec,
      kQ6KCodec,
      kIQ4NLCodec,
      kQ2KCodec,
      kQ3KCodec,
      kQ8KCodec,
      kIQ4XSCodec,
      kIQ2XXSCodec,
      kIQ2XSCodec,
      kIQ2SCodec,
      kIQ3XXSCodec,
      kIQ3SCodec,
      kIQ1SCodec,
      kIQ1MCodec,
      kTQ10Codec,
      kTQ20Codec,
      kMXFP4GGMLCodec,
      kNVFP4Codec,
      kQ10Codec,
      kQ20Codec,
      kQ20G128Codec,
      kSTQ10Codec,
      kG80Codec,
      kPTQ10Codec,
      kFV5Codec,
      kFV5BCodec,
      kI2SCodec,
      kI8SCodec,
  };
  return table;
}

const Codec& codec_info(CodecId id) {
  const Codec* row = find_row([id](const Codec& codec) { return codec.id == id; });
  assert(row && "every enumerator has a row");
  return *row;
}

const Codec* find_codec(std::string_view name) {
  return find_row([name](const Codec& codec) { return codec.name == name; });
}

const Codec* find_cli_codec(std::string_view family_and_scheme) {
  const size_t colon = family_and_scheme.find(':');
  if (colon == std::string_view::npos)
    return find_codec(family_and_scheme);
  const std::string_view family = family_and_scheme.substr(0, colon);
  const std::string_view scheme = family_and_scheme.substr(colon + 1);
  if (scheme.empty() || (family != "cmf" && family != "gguf"))
    return nullptr;
  if (family == "gguf")
    return find_gguf_scheme(scheme);
  return find_row([&](const Codec& codec) { return equal_words(scheme, codec.cmf_name); });
}

const Codec* find_cmf_codec(int code) {
  return code < 0 ? nullptr : find_row([code](const Codec& codec) { return codec.cmf_code == code; });
}

const Codec* find_gguf_scheme(std::string_view scheme) {
  return find_row([scheme](const Codec& codec) {
    return !codec.gguf_name.empty() && (equal_words(scheme, codec.gguf_name) || equal_words(scheme, codec.name));
  });
}

const Codec* find_gguf_codec(uint32_t type_id) {
  return find_row([type_id](const Codec& codec) {
    return codec.gguf_code >= 0 && static_cast<uint32_t>(codec.gguf_code) == type_id;
  });
}

} // namespace cortiq::formats

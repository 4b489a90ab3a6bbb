// --decode: the reference decode of a bare payload, for tests of codecs.

#include <charconv>
#include <optional>
#include <utility>

#include "formats/codec/codec.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "tools/cortiq-inspect/f32_output.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::quote;

/// "128x64" as rows and columns, both above 0.
std::optional<std::pair<uint64_t, uint64_t>> parse_shape(std::string_view text) {
  uint64_t rows = 0;
  uint64_t cols = 0;
  const char* end = text.data() + text.size();
  const auto [after_rows, first] = std::from_chars(text.data(), end, rows);
  if (first != std::errc() || after_rows == end || *after_rows != 'x')
    return std::nullopt;
  const auto [after_cols, second] = std::from_chars(after_rows + 1, end, cols);
  if (second != std::errc() || after_cols != end || rows == 0 || cols == 0)
    return std::nullopt;
  return std::pair(rows, cols);
}

std::string known_codecs() {
  std::string out;
  for (const formats::Codec& codec : formats::codec_table()) {
    if (codec.decode_row == nullptr)
      continue;
    for (const auto& [family, name] : {std::pair("cmf:", codec.cmf_name), std::pair("gguf:", codec.gguf_name)})
      if (!name.empty())
        out += (out.empty() ? "" : ", ") + (family + std::string(name));
  }
  return out;
}

Status run(const Arguments& arguments) {
  const formats::Codec* codec = formats::find_cli_codec(arguments.value);
  if (codec == nullptr || codec->decode_row == nullptr)
    return unsupported("there is no decoder for " + quote(arguments.value) + "; known are " + known_codecs());
  const auto shape = parse_shape(arguments.get("shape"));
  if (!shape)
    return invalid("--shape is " + quote(arguments.get("shape")) + ", expected rows and columns such as 128x64");
  const auto [rows, cols] = *shape;
  if (StatusOr<uint64_t> size = codec->payload_bytes(*codec, rows, cols); !size.ok())
    return size.status().with_prefix("--shape " + std::string(arguments.get("shape")));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(arguments.file));
  CORTIQ_RETURN_IF_ERROR(
      formats::check_payload(*codec, file.bytes(), rows, cols, /*strict=*/false).with_prefix(quote(arguments.file)));
  return write_decoded(*codec, file.bytes().data(), rows, cols, std::string(arguments.get("output")));
}

constexpr Option kOptions[] = {
    {"--shape", "RxC", "rows and columns of the payload", true},
    kOutput,
};

} // namespace

const Mode kDecodeMode = {
    .flag = "--decode",
    .value = "FAMILY:SCHEME",
    .help = "decode FILE, a bare payload (cmf:q4tp, gguf:Q4_K, ...), to float32",
    .options = kOptions,
    .run = run,
};

} // namespace cortiq::inspect

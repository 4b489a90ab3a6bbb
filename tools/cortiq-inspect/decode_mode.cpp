// --decode: the reference decode of a bare payload, for tests of codecs.

#include <charconv>
#include <optional>
#include <vector>

#include "formats/checked_math.h"
#include "formats/codec/codec.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "tools/cortiq-inspect/f32_output.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::quote;

/// "128x64", or "8x128x64", as numbers above 0.
std::optional<std::vector<uint64_t>> parse_shape(std::string_view text) {
  std::vector<uint64_t> sizes;
  const char *at = text.data(), *end = text.data() + text.size();
  for (;;) {
    uint64_t size = 0;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size == 0 || sizes.size() == 3)
      return std::nullopt;
    sizes.push_back(size);
    if (after == end)
      return sizes;
    if (*after != 'x')
      return std::nullopt;
    at = after + 1;
  }
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
  const bool grouped = arguments.has("grouped");
  if (!shape || shape->size() != (grouped ? 3 : 2))
    return invalid("--shape is " + quote(arguments.get("shape")) + ", expected " +
                   (grouped ? "experts, rows and columns such as 8x128x64" : "rows and columns such as 128x64"));
  const uint64_t cols = shape->back();
  const auto product = formats::checked_mul(shape->front(), grouped ? (*shape)[1] : 1);
  if (!product)
    return invalid("--shape " + std::string(arguments.get("shape")) + " has more rows than can be counted");
  const uint64_t rows = *product;
  if (StatusOr<uint64_t> size = codec->payload_bytes(*codec, rows, cols); !size.ok())
    return size.status().with_prefix("--shape " + std::string(arguments.get("shape")));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(arguments.file));
  CORTIQ_RETURN_IF_ERROR(
      formats::check_payload(*codec, file.bytes(), rows, cols, /*strict=*/false).with_prefix(quote(arguments.file)));
  if (grouped)
    return write_grouped(*codec, file.bytes(), {(*shape)[0], (*shape)[1], cols}, std::string(arguments.get("output")));
  return write_decoded(*codec, file.bytes().data(), rows, cols, std::string(arguments.get("output")));
}

constexpr Option kOptions[] = {
    {"--shape", "RxC", "rows and columns of the payload, with --grouped ExRxC", true},
    {"--grouped", nullptr, "the payload is a stack of experts, each of which is written transposed: [E][C][R]"},
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

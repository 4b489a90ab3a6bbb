// A tokenizer.json, or an artifact's tokenizer section; what follows a zero byte is the text to encode.

#include <algorithm>
#include <string_view>

#include "runtime/text/text_section.h"
#include "runtime/text/tokenizer.h"
#include "test/fuzz/memory_file.h"

using namespace cortiq;
using runtime::text::Tokenizer;

namespace {

constexpr std::string_view kText =
    "The quick\tbrown  fox's 12345\r\n\n \xC3\xA9\xE2\x96\x81\xF0\x9F\x98\x80\xFF <|im_end|>";
/// Text beyond this only repeats itself.
constexpr size_t kLongestText = 4096;

std::string decode_streamed(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  runtime::text::StreamDecoder decoder(tokenizer);
  std::string out;
  for (const uint32_t id : ids)
    if (const StatusOr<std::string> piece = decoder.push(id); piece.ok())
      out += *piece;
  if (const StatusOr<std::string> rest = decoder.flush(); rest.ok())
    out += *rest;
  return out;
}

void use(const Tokenizer& tokenizer, std::string_view text) {
  static_cast<void>(tokenizer.special_ids());
  static_cast<void>(tokenizer.token_text(tokenizer.vocab_size()));
  for (const bool parse_special : {true, false}) {
    const auto ids = tokenizer.encode(text, {.add_special = true, .parse_special = parse_special});
    if (!ids.ok())
      continue;
    static_cast<void>(tokenizer.decode(*ids, !parse_special));
    static_cast<void>(decode_streamed(tokenizer, *ids));
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  if (const auto section = runtime::text::open_text_section(input); section.ok())
    use(section->tokenizer, kText);

  const size_t end = static_cast<size_t>(std::find(data, data + size, 0) - data);
  std::string_view text = kText;
  if (end < size)
    text = std::string_view(reinterpret_cast<const char*>(data) + end + 1, std::min(size - end - 1, kLongestText));
  const StatusOr<Tokenizer> tokenizer = Tokenizer::from_bytes(input.first(end));
  if (!tokenizer.ok()) {
    fuzz::require(tokenizer.status().code() != StatusCode::kInternal, "a refusal that blames the program");
    return 0;
  }
  use(*tokenizer, text);
  const auto compact = runtime::text::compact_tokenizer(input.first(end));
  if (!compact.ok())
    return 0;
  const StatusOr<Tokenizer> again = Tokenizer::from_bytes(*compact);
  fuzz::require(again.ok(), "the compact form of a tokenizer loads");
  const auto ids = tokenizer->encode(text);
  const auto compact_ids = again->encode(text);
  fuzz::require(ids.ok() == compact_ids.ok() && (!ids.ok() || *ids == *compact_ids),
                "the compact form encodes as the tokenizer does");
  return 0;
}

#include "tools/cortiq-serve/openai/served_model.h"

#include <array>
#include <cstdio>
#include <optional>

#include "formats/quote.h"

namespace cortiq::serve {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// "<0xE6>", as vocabularies with byte fallback spell a byte.
std::optional<std::string> fallback_byte(std::string_view spelled) {
  if (spelled.size() != 6 || !spelled.starts_with("<0x") || spelled.back() != '>')
    return std::nullopt;
  int value = 0;
  for (const char c : spelled.substr(3, 2)) {
    const size_t digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos)
      return std::nullopt;
    value = value * 16 + static_cast<int>(digit);
  }
  return std::string(1, static_cast<char>(value));
}

/// The bytes behind the 256 characters by which byte-level vocabularies spell them: printable ones of Latin-1 stand for
/// themselves, the others were moved to U+0100 and on, in order.
int byte_of(uint32_t character) {
  static const std::array<int, 324> table = [] {
    std::array<int, 324> out;
    out.fill(-1);
    uint32_t moved = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      out[itself ? byte : moved++] = static_cast<int>(byte);
    }
    return out;
  }();
  return character < table.size() ? table[character] : -1;
}

std::optional<std::string> byte_level(std::string_view spelled) {
  std::string out;
  for (size_t i = 0; i < spelled.size(); ++i) {
    auto character = static_cast<unsigned char>(spelled[i]);
    uint32_t code = character;
    if (character >= 0x80) { // all of them have two bytes
      if (i + 1 >= spelled.size() || (character & 0xE0) != 0xC0)
        return std::nullopt;
      code = (character & 0x1Fu) << 6 | (static_cast<unsigned char>(spelled[++i]) & 0x3Fu);
    }
    const int byte = byte_of(code);
    if (byte < 0)
      return std::nullopt;
    out += static_cast<char>(byte);
  }
  return out;
}

} // namespace

StatusOr<formats::OverlaySelection> ServedModel::find(std::string_view name) const {
  const formats::OverlayCatalog& catalog = model->overlay();
  formats::OverlayRequest request;
  if (name != id) {
    if (!name.starts_with(id + ":")) {
      std::string list;
      for (const std::string& known : names())
        list += (list.empty() ? "" : ", ") + known;
      return invalid("there is no model " + formats::quote(std::string(name)) + " here; there is " + list);
    }
    request.skill = name.substr(id.size() + 1);
  }
  return formats::select_overlay(catalog, request);
}

std::vector<std::string> ServedModel::names() const {
  std::vector<std::string> out = {id};
  for (const formats::OverlaySkill& skill : model->overlay().skills)
    out.push_back(id + ":" + skill.id);
  return out;
}

std::string ServedModel::token_bytes(uint32_t id) const {
  const StatusOr<std::string> text = this->text->tokenizer.decode(std::span(&id, 1), false);
  if (text.ok() && text->find(kReplacement) == std::string::npos)
    return *text;
  const std::string spelled = this->text->tokenizer.token_text(id).value_or("");
  if (const auto byte = fallback_byte(spelled))
    return *byte;
  return byte_level(spelled).value_or(text.ok() ? *text : "");
}

std::string ServedModel::token_name(uint32_t id) const {
  const std::string bytes = token_bytes(id);
  const StatusOr<std::string> text = this->text->tokenizer.decode(std::span(&id, 1), false);
  if (text.ok() && *text == bytes)
    return bytes;
  std::string out = "bytes:";
  for (const char byte : bytes) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(byte));
    out += hex;
  }
  return out;
}

} // namespace cortiq::serve

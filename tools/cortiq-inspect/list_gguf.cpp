#include <nlohmann/json.hpp>

#include "formats/gguf/gguf_file.h"
#include "tools/cortiq-inspect/listing.h"

namespace cortiq::inspect {
namespace {

using formats::Json;

/// Elements shown of a longer array; vocabularies have hundreds of thousands.
constexpr size_t kShownElements = 8;

Json scalar_of(const formats::GgufScalar& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string_view>)
          return Json(std::string(v));
        else
          return Json(v);
      },
      value);
}

Json array_of(const formats::GgufArray& array) {
  Json elements = Json::array();
  array.for_each([&](const formats::GgufScalar& value) {
    elements.push_back(scalar_of(value));
    return elements.size() < kShownElements;
  });
  if (array.size <= kShownElements)
    return elements;
  return {{"type", gguf_type_name(array.element)}, {"size", array.size}, {"first", std::move(elements)}};
}

} // namespace

Listing list_gguf(const formats::GgufFile& file) {
  Listing out;
  out.format = "GGUF " + std::to_string(file.version());
  const StatusOr<std::string_view> architecture = file.architecture();
  out.architecture = architecture.ok() ? *architecture : std::string_view();
  for (size_t i = 0; i < file.file_count(); ++i) {
    out.files.push_back(file.file_path(i));
    out.file_bytes += file.file_bytes(i).size();
  }
  out.metadata = Json::object();
  for (const formats::GgufEntry& entry : file.entries()) {
    const auto* scalar = std::get_if<formats::GgufScalar>(&entry.value);
    out.metadata[std::string(entry.key)] =
        scalar != nullptr ? scalar_of(*scalar) : array_of(std::get<formats::GgufArray>(entry.value));
  }
  return out;
}

} // namespace cortiq::inspect

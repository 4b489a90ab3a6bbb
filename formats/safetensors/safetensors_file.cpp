#include "formats/safetensors/safetensors_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "formats/checked_math.h"
#include "formats/json.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = uint64_t{100} << 20; // the format's own limit
constexpr size_t kMostDimensions = 8;

struct Dtype {
  std::string_view name;
  uint64_t bytes;
  std::optional<CodecId> codec;
};

constexpr Dtype kDtypes[] = {
    {"F64", 8, std::nullopt},     {"F32", 4, CodecId::kF32},    {"F16", 2, CodecId::kF16},
    {"BF16", 2, CodecId::kBF16},  {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt}, {"I64", 8, std::nullopt},     {"I32", 4, std::nullopt},
    {"I16", 2, std::nullopt},     {"I8", 1, std::nullopt},      {"U64", 8, CodecId::kU64},
    {"U32", 4, CodecId::kU32},    {"U16", 2, std::nullopt},     {"U8", 1, CodecId::kU8},
    {"BOOL", 1, std::nullopt},
};

const Dtype* find_dtype(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return d.name == name; });
  return found == std::end(kDtypes) ? nullptr : found;
}

/// A list of integers, none of them negative.
std::optional<std::vector<uint64_t>> numbers(const Json& entry, const char* key, size_t most) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array() || list->size() > most)
    return std::nullopt;
  std::vector<uint64_t> out;
  for (const Json& value : *list) {
    if (!value.is_number_unsigned())
      return std::nullopt;
    out.push_back(value.get<uint64_t>());
  }
  return out;
}

StatusOr<Tensor> parse_entry(const std::string& name, const Json& entry, std::span<const uint8_t> data) {
  const std::string where = "tensor " + quote(name);
  const auto dtype_name = entry.find("dtype");
  if (!entry.is_object() || dtype_name == entry.end() || !dtype_name->is_string())
    return invalid(where + " has no dtype");
  const Dtype* dtype = find_dtype(dtype_name->get_ref<const std::string&>());
  if (!dtype)
    return unsupported(where + " is of the unknown type " + quote(dtype_name->get_ref<const std::string&>()));
  const std::optional<std::vector<uint64_t>> shape = numbers(entry, "shape", kMostDimensions);
  const std::optional<std::vector<uint64_t>> offsets = numbers(entry, "data_offsets", 2);
  if (!shape || !offsets || offsets->size() != 2)
    return invalid(where + " has no shape or data_offsets made of numbers");
  std::optional<uint64_t> size = dtype->bytes;
  for (const uint64_t d : *shape)
    size = checked_mul(size, d);
  const uint64_t begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end || end > data.size())
    return invalid(where + " lies at bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
                   std::to_string(data.size()));
  if (size != end - begin)
    return invalid(where + " has " + std::to_string(end - begin) + " bytes, which is not the size of " +
                   shape_text(*shape) + " " + std::string(dtype->name));
  Tensor tensor;
  tensor.name = name;
  tensor.codec = dtype->codec ? &codec_info(*dtype->codec) : nullptr;
  tensor.shape = *shape;
  tensor.offset = begin;
  tensor.data = data.subspan(begin, end - begin);
  tensor.type_name = dtype->name;
  return tensor;
}

StatusOr<std::vector<Tensor>> parse(std::span<const uint8_t> file) {
  uint64_t length = 0;
  if (file.size() >= kLengthBytes)
    std::memcpy(&length, file.data(), kLengthBytes);
  if (file.size() < kLengthBytes || length == 0 || length > kLongestHeader || length > file.size() - kLengthBytes)
    return invalid("is no safetensors file: its header of " + std::to_string(length) + " bytes does not fit " +
                   std::to_string(file.size()) + " bytes");
  const std::span<const uint8_t> data = file.subspan(kLengthBytes + length);
  CORTIQ_ASSIGN_OR_RETURN(const Json header, parse_json({reinterpret_cast<const char*>(file.data() + kLengthBytes),
                                                         static_cast<size_t>(length)},
                                                        "its header"));
  if (!header.is_object())
    return invalid("has a header that is no JSON object");
  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    CORTIQ_ASSIGN_OR_RETURN(Tensor tensor, parse_entry(name, entry, data));
    tensors.push_back(std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const Tensor& a, const Tensor& b) { return std::tie(a.offset, a.name) < std::tie(b.offset, b.name); });
  uint64_t end = 0;
  for (Tensor& tensor : tensors) {
    if (tensor.offset < end)
      return invalid("tensor " + quote(tensor.name) + " overlaps the one before it");
    end = tensor.offset + tensor.data.size();
    tensor.offset += kLengthBytes + length;
  }
  return tensors;
}

} // namespace

StatusOr<std::vector<Tensor>> parse_safetensors(std::span<const uint8_t> file, const std::string& path) {
  StatusOr<std::vector<Tensor>> tensors = parse(file);
  if (!tensors.ok())
    return tensors.status().with_prefix(quote(path));
  return tensors;
}

} // namespace cortiq::formats

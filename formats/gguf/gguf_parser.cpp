#include "formats/gguf/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "formats/checked_math.h"
#include "formats/gguf/gguf_types.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr uint32_t kMaxDimensions = 4;
/// The least bytes that an entry (key length, type, one byte of value, one byte of key) and a tensor info can take:
/// what bounds the two counts before anything is allocated for them.
constexpr uint64_t kLeastEntry = 8 + 1 + 4 + 1;
constexpr uint64_t kLeastInfo = 8 + 4 + 4 + 8;
/// ggml keeps tensor names in 64 bytes with a terminator.
constexpr uint64_t kLongestName = 63;

/// Takes values from the front of a file, never past its end.
class Cursor {
public:
  explicit Cursor(std::span<const uint8_t> file) : file_(file) {}

  uint64_t position() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }
  std::span<const uint8_t> from(uint64_t position) const { return file_.subspan(position, at_ - position); }

  template <class T>
  Status take(T& out, const char* part) {
    if (left() < sizeof(T))
      return ends_inside(part);
    std::memcpy(&out, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return {};
  }

  Status take_string(std::string_view& out, const char* part) {
    uint64_t length = 0;
    CORTIQ_RETURN_IF_ERROR(take(length, part));
    if (length > left())
      return invalid(std::string("a string in the ") + part + " claims " + std::to_string(length) +
                     " bytes, but only " + std::to_string(left()) + " are left in the file");
    out = {reinterpret_cast<const char*>(file_.data()) + at_, length};
    at_ += length;
    return {};
  }

  Status skip(std::optional<uint64_t> bytes, const char* part) {
    if (!bytes || *bytes > left())
      return ends_inside(part);
    at_ += *bytes;
    return {};
  }

private:
  static Status ends_inside(const char* part) { return invalid(std::string("the file ends inside the ") + part); }

  std::span<const uint8_t> file_;
  uint64_t at_ = 0;
};

constexpr const char* kHead = "header";
constexpr const char* kMetadata = "metadata";
constexpr const char* kTable = "tensor table";

Status unknown_value_type(uint32_t type) {
  return invalid("has the unknown value type " + std::to_string(type));
}

/// Booleans are 0 or 1.
Status check_bools(std::span<const uint8_t> bytes) {
  for (const uint8_t b : bytes)
    if (b > 1)
      return invalid("has the boolean " + std::to_string(b) + ", expected 0 or 1");
  return {};
}

Status read_array(Cursor& cursor, GgufArray& out) {
  uint32_t type = 0;
  CORTIQ_RETURN_IF_ERROR(cursor.take(type, kMetadata));
  CORTIQ_RETURN_IF_ERROR(cursor.take(out.size, kMetadata));
  out.element = static_cast<GgufType>(type);
  const uint64_t start = cursor.position();
  if (out.element == GgufType::kArray)
    return invalid("is an array of arrays, which GGUF does not have");
  if (out.element == GgufType::kString) {
    if (out.size > cursor.left() / 8)
      return invalid("claims " + std::to_string(out.size) + " elements, more than the file can hold");
    std::string_view ignored;
    for (uint64_t i = 0; i < out.size; ++i)
      CORTIQ_RETURN_IF_ERROR(cursor.take_string(ignored, kMetadata));
  } else {
    const uint64_t bytes = gguf_type_bytes(out.element);
    if (bytes == 0)
      return unknown_value_type(type);
    if (out.size > cursor.left() / bytes)
      return invalid("claims " + std::to_string(out.size) + " elements, more than the file can hold");
    CORTIQ_RETURN_IF_ERROR(cursor.skip(out.size * bytes, kMetadata));
  }
  out.bytes = cursor.from(start);
  return out.element == GgufType::kBool ? check_bools(out.bytes) : Status();
}

Status read_value(Cursor& cursor, GgufEntry& entry) {
  uint32_t type = 0;
  CORTIQ_RETURN_IF_ERROR(cursor.take(type, kMetadata));
  entry.type = static_cast<GgufType>(type);
  if (entry.type == GgufType::kArray)
    return read_array(cursor, entry.value.emplace<GgufArray>());
  if (entry.type == GgufType::kString) {
    std::string_view text;
    CORTIQ_RETURN_IF_ERROR(cursor.take_string(text, kMetadata));
    entry.value = GgufScalar(text);
    return {};
  }
  const uint64_t bytes = gguf_type_bytes(entry.type);
  if (bytes == 0)
    return unknown_value_type(type);
  const uint64_t start = cursor.position();
  CORTIQ_RETURN_IF_ERROR(cursor.skip(bytes, kMetadata));
  std::span<const uint8_t> value = cursor.from(start);
  if (entry.type == GgufType::kBool)
    CORTIQ_RETURN_IF_ERROR(check_bools(value));
  entry.value = take_gguf_scalar(entry.type, value);
  return {};
}

Status read_entries(Cursor& cursor, uint64_t count, GgufContents& out) {
  std::unordered_set<std::string_view> keys;
  out.entries.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    GgufEntry& entry = out.entries.emplace_back();
    CORTIQ_RETURN_IF_ERROR(cursor.take_string(entry.key, kMetadata));
    if (entry.key.empty())
      return invalid("metadata entry " + std::to_string(i) + " has an empty key");
    if (!is_utf8(entry.key))
      return invalid("the key " + quote(entry.key) + " is not UTF-8");
    if (!keys.insert(entry.key).second)
      return invalid("the key " + quote(entry.key) + " stands there twice");
    CORTIQ_RETURN_IF_ERROR(read_value(cursor, entry).with_prefix("key " + quote(entry.key)));
    if (entry.key == "general.alignment") {
      const auto* scalar = std::get_if<GgufScalar>(&entry.value);
      const uint64_t* number = scalar == nullptr ? nullptr : std::get_if<uint64_t>(scalar);
      if (entry.type != GgufType::kU32 || number == nullptr)
        return invalid("general.alignment is of type " + std::string(gguf_type_name(entry.type)) + ", expected u32");
      if (!std::has_single_bit(*number))
        return invalid("general.alignment is " + std::to_string(*number) + ", expected a power of two");
      out.alignment = static_cast<uint32_t>(*number);
    }
  }
  return {};
}

/// Exact bytes of a tensor that is of this type; sets its codec and type name.
StatusOr<uint64_t> apply_type(Tensor& tensor, const GgufTensorType& type) {
  tensor.type_code = static_cast<int>(type.id);
  tensor.type_name = type.name;
  tensor.codec = find_gguf_scheme(type.name);
  if (tensor.cols() % type.block != 0)
    return invalid("has rows of " + std::to_string(tensor.cols()) + " weights, but " + std::string(type.name) +
                   " stores whole blocks of " + std::to_string(type.block));
  std::optional<uint64_t> elements = 1;
  for (const uint64_t dim : tensor.shape)
    elements = checked_mul(elements, dim);
  if (!elements || *elements > uint64_t{1} << 62)
    return invalid("has the shape " + shape_text(tensor.shape) + ", whose element count overflows");
  const std::optional<uint64_t> bytes =
      checked_add(checked_mul(*elements / type.block, type.block_bytes), type.trailer);
  if (!bytes)
    return invalid("has the shape " + shape_text(tensor.shape) + ", whose byte size overflows");
  return *bytes;
}

/// The same for a type id, by its first reading.
StatusOr<uint64_t> resolve_type(Tensor& tensor, uint32_t id) {
  const std::span<const GgufTensorType> readings = gguf_tensor_types(id);
  if (is_removed_gguf_type(id))
    return invalid("has the removed tensor type " + std::to_string(id));
  if (readings.empty())
    return invalid("has the unknown tensor type " + std::to_string(id));
  return apply_type(tensor, readings.front());
}

/// Reads one info; the data's place is set later, when it is known where the table ends. `size` gets the data's bytes.
Status read_info(Cursor& cursor, Tensor& tensor, uint64_t& size) {
  uint32_t rank = 0;
  CORTIQ_RETURN_IF_ERROR(cursor.take(rank, kTable));
  if (rank > kMaxDimensions)
    return invalid("has " + std::to_string(rank) + " dimensions, expected at most 4");
  tensor.shape.resize(rank);
  // The file has the innermost dimension first.
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t& dim = tensor.shape[rank - 1 - i];
    CORTIQ_RETURN_IF_ERROR(cursor.take(dim, kTable));
    if (dim == 0)
      return invalid("has a dimension of 0");
  }
  uint32_t type = 0;
  CORTIQ_RETURN_IF_ERROR(cursor.take(type, kTable));
  CORTIQ_RETURN_IF_ERROR(cursor.take(tensor.offset, kTable));
  CORTIQ_ASSIGN_OR_RETURN(size, resolve_type(tensor, type));
  return {};
}

Status read_table(Cursor& cursor, uint64_t count, GgufContents& out, std::vector<uint64_t>& sizes) {
  std::unordered_set<std::string> names;
  out.tensors.reserve(count);
  sizes.resize(count);
  for (uint64_t i = 0; i < count; ++i) {
    Tensor& tensor = out.tensors.emplace_back();
    std::string_view name;
    CORTIQ_RETURN_IF_ERROR(cursor.take_string(name, kTable));
    if (name.empty() || name.size() > kLongestName || !is_utf8(name))
      return invalid("tensor " + std::to_string(i) + " has the name " + quote(name) +
                     ", expected 1 to 63 bytes of UTF-8");
    tensor.name = name;
    if (!names.insert(tensor.name).second)
      return invalid("two tensors have one name, " + quote(name));
    CORTIQ_RETURN_IF_ERROR(read_info(cursor, tensor, sizes[i]).with_prefix("tensor " + quote(name)));
  }
  return {};
}

/// Whether a tensor of `size` bytes takes up `extent` bytes of the data.
bool fills(uint64_t size, uint64_t extent, uint32_t alignment) {
  return size == extent || checked_round_up(size, alignment) == extent;
}

/// The reading whose size the extent of a tensor's data speaks for; the first one where none does. Bytes behind the
/// last tensor mean nothing, so that there a reading that leaves some is the next best.
const GgufTensorType& reading_by_extent(Tensor& tensor, std::span<const GgufTensorType> readings, uint64_t extent,
                                        bool last, uint32_t alignment) {
  for (const bool exact : {true, false})
    for (const GgufTensorType& reading : readings) {
      const StatusOr<uint64_t> size = apply_type(tensor, reading);
      if (size.ok() && (exact ? fills(*size, extent, alignment) : last && *size <= extent))
        return reading;
    }
  return readings.front();
}

/// Ids with several readings (specification section 2). Id 143 is PTQ1_0 in files of its project, whose metadata says
/// so. Nothing marks id 42: the extent of the data decides.
Status settle_shared_ids(uint64_t data_bytes, bool prism, std::vector<uint64_t>& sizes, GgufContents& out) {
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    Tensor& tensor = out.tensors[i];
    const std::span<const GgufTensorType> readings = gguf_tensor_types(static_cast<uint32_t>(tensor.type_code));
    if (readings.size() == 1)
      continue;
    const bool last = i + 1 == out.tensors.size();
    const uint64_t end = last ? data_bytes : out.tensors[i + 1].offset;
    const uint64_t extent = end > tensor.offset ? end - tensor.offset : 0;
    const GgufTensorType& by_writer = prism ? readings.back() : readings.front();
    StatusOr<uint64_t> size = apply_type(
        tensor, tensor.type_code == 143 ? by_writer : reading_by_extent(tensor, readings, extent, last, out.alignment));
    if (!size.ok())
      return size.status().with_prefix("tensor " + quote(tensor.name));
    sizes[i] = *size;
  }
  return {};
}

bool has_prism_keys(const GgufContents& contents) {
  return std::any_of(contents.entries.begin(), contents.entries.end(),
                     [](const GgufEntry& entry) { return entry.key.starts_with("prism."); });
}

/// Gives each tensor its bytes. As in ggml, an offset has to be the running sum of the padded sizes before it.
Status place_tensors(std::span<const uint8_t> file, const std::vector<uint64_t>& sizes, GgufContents& out) {
  uint64_t expected = 0;
  for (size_t i = 0; i < out.tensors.size(); ++i) {
    Tensor& tensor = out.tensors[i];
    const std::string where = "tensor " + quote(tensor.name);
    if (tensor.offset != expected)
      return invalid(where + " has the offset " + std::to_string(tensor.offset) + ", expected " +
                     std::to_string(expected) + " (the sum of the padded sizes before it)");
    const std::optional<uint64_t> start = checked_add(out.data_offset, tensor.offset);
    if (!start || !range_fits(*start, sizes[i], file.size()))
      return invalid(where + " runs past the end of the file (" + std::to_string(sizes[i]) + " bytes at offset " +
                     std::to_string(tensor.offset) + " of the data)");
    tensor.offset = *start;
    tensor.data = file.subspan(*start, sizes[i]);
    const std::optional<uint64_t> next = checked_round_up(expected + sizes[i], out.alignment);
    if (!next)
      return invalid(where + " leaves no room for another offset");
    expected = *next;
  }
  return {};
}

Status read_head(Cursor& cursor, uint64_t& tensors, uint64_t& entries, GgufContents& out) {
  char magic[4] = {};
  CORTIQ_RETURN_IF_ERROR(cursor.take(magic, kHead));
  if (std::string_view(magic, 4) != "GGUF")
    return invalid("wrong magic: a GGUF file starts with 47 47 55 46");
  CORTIQ_RETURN_IF_ERROR(cursor.take(out.version, kHead));
  if (out.version != 0 && (out.version & 0xFFFF) == 0)
    return unsupported("is a big-endian GGUF file, which is not supported");
  if (out.version != 2 && out.version != 3)
    return unsupported("has the GGUF version " + std::to_string(out.version) + ", expected 2 or 3");
  CORTIQ_RETURN_IF_ERROR(cursor.take(tensors, kHead));
  CORTIQ_RETURN_IF_ERROR(cursor.take(entries, kHead));
  // The counts are signed in other readers; negative ones fail this test as huge ones do.
  if (entries > cursor.left() / kLeastEntry)
    return invalid("claims " + std::to_string(entries) + " metadata entries, more than the file can hold");
  if (tensors > cursor.left() / kLeastInfo)
    return invalid("claims " + std::to_string(tensors) + " tensors, more than the file can hold");
  return {};
}

} // namespace

StatusOr<GgufContents> parse_gguf(std::span<const uint8_t> file, const GgufContents* first_part) {
  if (file.empty())
    return invalid("the file is empty");
  GgufContents out;
  Cursor cursor(file);
  uint64_t tensors = 0;
  uint64_t entries = 0;
  std::vector<uint64_t> sizes;
  CORTIQ_RETURN_IF_ERROR(read_head(cursor, tensors, entries, out));
  CORTIQ_RETURN_IF_ERROR(read_entries(cursor, entries, out));
  CORTIQ_RETURN_IF_ERROR(read_table(cursor, tensors, out, sizes));
  // With no tensors the padding may be missing.
  const std::optional<uint64_t> start = checked_round_up(cursor.position(), out.alignment);
  if (!start)
    return invalid("the data section's offset overflows");
  out.data_offset = *start;
  const uint64_t data_bytes = *start < file.size() ? file.size() - *start : 0;
  CORTIQ_RETURN_IF_ERROR(settle_shared_ids(data_bytes, has_prism_keys(first_part ? *first_part : out), sizes, out));
  CORTIQ_RETURN_IF_ERROR(place_tensors(file, sizes, out));
  return out;
}

} // namespace cortiq::formats

#pragma once

// Reader of GGUF v2/v3 files (single or split). Everything that GgufFile hands out was checked against the file; what
// the keys and tensors of a model must be is checked by whoever builds a model from them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "formats/mapped_file.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// Types of metadata values, numbered as in the file.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u32", "string", …
std::string_view gguf_type_name(GgufType type);

/// A scalar value: unsigned and signed integers, floats, booleans (as bool), strings (a view into the file).
using GgufScalar = std::variant<uint64_t, int64_t, double, bool, std::string_view>;

/// An array inside the file. Its bytes were walked once at open, so reading an element cannot fail.
struct GgufArray {
  GgufType element = GgufType::kU8;
  uint64_t size = 0;
  std::span<const uint8_t> bytes; ///< the elements back to back; strings with their lengths
};

/// One metadata entry, in file order.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kU8;
  std::variant<GgufScalar, GgufArray> value;
};

/// An opened GGUF: one file, or part 1 with all its siblings.
class GgufFile {
public:
  /// Opens and checks `path`. Opening the first part of a split opens the others, which lie in the same folder. Every
  /// failure is one sentence that starts with the file's name.
  static StatusOr<GgufFile> open(const std::string& path);

  GgufFile(GgufFile&&) noexcept = default;
  GgufFile& operator=(GgufFile&&) noexcept = default;

  const std::string& path() const { return parts_[0].file.path(); }
  size_t file_count() const { return parts_.size(); }
  const std::string& file_path(size_t i) const { return parts_[i].file.path(); }
  std::span<const uint8_t> file_bytes(size_t i) const { return parts_[i].file.bytes(); }
  uint32_t version() const { return parts_[0].version; }
  uint32_t alignment() const { return parts_[0].alignment; }
  uint64_t data_offset() const { return parts_[0].data_offset; }

  /// All tensors: part by part, each in table order; shapes outermost first (the file has them the other way round).
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;

  /// Metadata of the first part, in file order.
  const std::vector<GgufEntry>& entries() const { return parts_[0].entries; }
  const GgufEntry* entry(std::string_view key) const;
  bool has(std::string_view key) const { return entry(key) != nullptr; }

  // Typed access. A missing key and a wrong type are failures that name file, key and found type. Integers accept every
  // integer type whose value fits, floats accept f32 and f64. The views stay valid for as long as the file is open.
  StatusOr<uint64_t> get_u64(std::string_view key) const;
  StatusOr<int64_t> get_i64(std::string_view key) const;
  StatusOr<double> get_f64(std::string_view key) const;
  StatusOr<bool> get_bool(std::string_view key) const;
  StatusOr<std::string_view> get_string(std::string_view key) const;

  // The same with a value for a missing key; a wrong type stays a failure.
  StatusOr<uint64_t> get_u64_or(std::string_view key, uint64_t otherwise) const;
  StatusOr<int64_t> get_i64_or(std::string_view key, int64_t otherwise) const;
  StatusOr<double> get_f64_or(std::string_view key, double otherwise) const;
  StatusOr<bool> get_bool_or(std::string_view key, bool otherwise) const;
  StatusOr<std::string_view> get_string_or(std::string_view key, std::string_view otherwise) const;

  // Arrays, converted as the scalars are.
  StatusOr<std::vector<uint64_t>> get_u64_array(std::string_view key) const;
  StatusOr<std::vector<int64_t>> get_i64_array(std::string_view key) const;
  StatusOr<std::vector<double>> get_f64_array(std::string_view key) const;
  StatusOr<std::vector<bool>> get_bool_array(std::string_view key) const;
  StatusOr<std::vector<std::string_view>> get_string_array(std::string_view key) const;

  /// A per-layer value: a scalar stands for all layers; an array shorter than `layers` is a failure that names both
  /// lengths (longer ones are cut). `layers` must be bounded by the caller.
  StatusOr<std::vector<uint64_t>> get_per_layer_u64(std::string_view key, uint64_t layers) const;
  StatusOr<std::vector<double>> get_per_layer_f64(std::string_view key, uint64_t layers) const;
  StatusOr<std::vector<bool>> get_per_layer_bool(std::string_view key, uint64_t layers) const;

  /// general.architecture.
  StatusOr<std::string_view> architecture() const { return get_string("general.architecture"); }

  /// Refuses files that are no language model by what they are: adapters, importance matrices, projectors, vocabularies
  /// without tensors, drafters, image and speech models.
  Status check_model() const;

private:
  struct Part {
    MappedFile file;
    uint32_t version = 0;
    uint32_t alignment = 32;
    uint64_t data_offset = 0;
    std::vector<GgufEntry> entries;
    std::unordered_map<std::string_view, size_t> by_key;
  };
  friend class GgufParser;
  GgufFile() = default;
  Status open_siblings();
  Status index_tensors();

  std::vector<Part> parts_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

} // namespace cortiq::formats

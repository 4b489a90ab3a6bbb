#pragma once

// Reader of GGUF v2/v3 files (single or split). Everything that GgufFile hands out was checked against the file; what
// the keys and tensors of a model must be is checked by whoever builds a model from them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/gguf/gguf_parser.h"
#include "formats/gguf/gguf_value.h"
#include "formats/mapped_file.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

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
  uint32_t version() const { return parts_[0].contents.version; }
  uint32_t alignment() const { return parts_[0].contents.alignment; }
  uint64_t data_offset() const { return parts_[0].contents.data_offset; }

  /// All tensors: part by part, each in table order; shapes outermost first (the file has them the other way round).
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;

  /// Metadata of the first part, in file order.
  const std::vector<GgufEntry>& entries() const { return parts_[0].contents.entries; }
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
    GgufContents contents; ///< its tensors are moved to tensors_
  };
  GgufFile() = default;
  Status add_part(const std::string& path);
  Status open_siblings();
  Status index_tensors();

  Status wrong_type(const GgufEntry& entry, const char* wanted) const;
  template <class T>
  Status convert(const GgufEntry& entry, const GgufScalar& value, T& out) const;
  template <class T>
  StatusOr<T> get(std::string_view key) const;
  template <class T>
  StatusOr<T> get_or(std::string_view key, T otherwise) const;
  template <class T>
  StatusOr<std::vector<T>> get_array(std::string_view key) const;
  template <class T>
  StatusOr<std::vector<T>> get_per_layer(std::string_view key, uint64_t layers) const;

  std::vector<Part> parts_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_key_;
  std::unordered_map<std::string_view, size_t> by_name_; ///< views into tensors_, which does not change after open
};

} // namespace cortiq::formats

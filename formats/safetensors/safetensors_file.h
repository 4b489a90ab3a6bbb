#pragma once

// Reader of safetensors files and of checkpoint folders made of them. Everything that is handed out was checked against
// the files.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/mapped_file.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// One file's tensors in the order of their bytes. A file is: u64 length, so many bytes of JSON (name to dtype, shape
/// and data_offsets; "__metadata__" is free text), the data that the offsets count from. Tensors whose dtype is no
/// codec of ours have a null codec. `path` names the file in messages, each one sentence.
StatusOr<std::vector<Tensor>> parse_safetensors(std::span<const uint8_t> file, const std::string& path);

/// The weights of a checkpoint folder: model.safetensors.index.json and the files that it names, or else the folder's
/// only *.safetensors file.
class SafetensorsFolder {
public:
  static StatusOr<SafetensorsFolder> open(const std::string& folder);
  SafetensorsFolder(SafetensorsFolder&&) noexcept = default;
  SafetensorsFolder& operator=(SafetensorsFolder&&) noexcept = default;

  size_t file_count() const { return files_.size(); }
  const std::string& file_path(size_t i) const { return files_[i].path(); }
  std::span<const uint8_t> file_bytes(size_t i) const { return files_[i].bytes(); }
  /// File by file, each in the order of its bytes.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;

private:
  SafetensorsFolder() = default;
  Status open_index(const std::string& folder, const std::string& index);
  Status open_single(const std::string& folder);
  Status add_file(const std::string& path);
  Status index_tensors();

  std::vector<MappedFile> files_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_; ///< views into tensors_, which does not change after open
};

} // namespace cortiq::formats

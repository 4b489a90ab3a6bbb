#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/json.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"

namespace cortiq::formats {
namespace {

constexpr size_t kMostFiles = 10000;

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

StatusOr<SafetensorsFolder> SafetensorsFolder::open(const std::string& folder) {
  SafetensorsFolder out;
  const std::string index = folder + "/model.safetensors.index.json";
  std::error_code error;
  CORTIQ_RETURN_IF_ERROR(std::filesystem::exists(index, error) ? out.open_index(folder, index)
                                                               : out.open_single(folder));
  return out;
}

Status SafetensorsFolder::open_index(const std::string& folder, const std::string& index) {
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(index));
  CORTIQ_ASSIGN_OR_RETURN(const Json json, parse_json(text_of(file.bytes()), quote(index)));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object())
    return invalid(quote(index) + " has no weight_map");
  std::set<std::string> names;
  for (const auto& [tensor, name] : map->items()) {
    if (!name.is_string())
      return invalid(quote(index) + ": the file of " + quote(tensor) + " is not a string");
    const std::string& text = name.get_ref<const std::string&>();
    // The files of a checkpoint lie in its folder and nowhere else.
    if (text.empty() || text.find('/') != std::string::npos || text.find('\0') != std::string::npos || text == "..")
      return invalid(quote(index) + ": " + quote(text) + " is not the name of a file in this folder");
    names.insert(text);
  }
  if (names.size() > kMostFiles)
    return invalid(quote(index) + " names " + std::to_string(names.size()) + " files");
  for (const std::string& name : names)
    CORTIQ_RETURN_IF_ERROR(add_file(folder + "/" + name));
  CORTIQ_RETURN_IF_ERROR(index_tensors());
  for (const auto& [tensor, name] : map->items()) {
    const Tensor* found = find(tensor);
    const std::string& file_name = name.get_ref<const std::string&>();
    if (!found || file_path(found->file) != folder + "/" + file_name)
      return invalid(quote(index) + ": tensor " + quote(tensor) + " is not in " + quote(file_name));
  }
  return {};
}

Status SafetensorsFolder::open_single(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors")
      found.push_back(it->path().string());
  if (error)
    return io_error("cannot read " + quote(folder) + ": " + error.message());
  if (found.size() != 1)
    return invalid(quote(folder) + " has " + std::to_string(found.size()) +
                   " *.safetensors files and no model.safetensors.index.json that tells which to take");
  CORTIQ_RETURN_IF_ERROR(add_file(found[0]));
  return index_tensors();
}

Status SafetensorsFolder::add_file(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  CORTIQ_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, parse_safetensors(file.bytes(), path));
  for (Tensor& tensor : tensors) {
    tensor.file = static_cast<uint32_t>(files_.size());
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back(std::move(file));
  return {};
}

Status SafetensorsFolder::index_tensors() {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!by_name_.emplace(tensors_[i].name, i).second)
      return invalid(quote(file_path(tensors_[i].file)) + ": tensor " + quote(tensors_[i].name) +
                     " is in another file too");
  return {};
}

const Tensor* SafetensorsFolder::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

} // namespace cortiq::formats

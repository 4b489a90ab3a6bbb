#include "formats/gguf/gguf_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

/// Architectures that are no autoregressive language model, and what they are.
struct ForeignArchitecture {
  std::string_view name;
  const char* what;
};

constexpr std::array kForeign = {
    ForeignArchitecture{"clip", "a vision or audio projector (clip); give the language model's file"},
    ForeignArchitecture{"eagle3", "a draft model (eagle3), not a model of its own"},
    ForeignArchitecture{"dflash", "a draft model (dflash), not a model of its own"},
    ForeignArchitecture{"flux", "an image generation model (flux)"},
    ForeignArchitecture{"sd1", "an image generation model (sd1)"},
    ForeignArchitecture{"wan", "a video generation model (wan)"},
    ForeignArchitecture{"wavtokenizer-dec", "a speech decoder (wavtokenizer-dec)"},
};

std::string split_tag(uint64_t number, uint64_t count) {
  char tag[64];
  std::snprintf(tag, sizeof tag, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(count));
  return tag;
}

const GgufEntry* find_entry(const GgufContents& contents, std::string_view key) {
  const auto it = std::find_if(contents.entries.begin(), contents.entries.end(),
                               [key](const GgufEntry& entry) { return entry.key == key; });
  return it == contents.entries.end() ? nullptr : &*it;
}

/// An integer of the split keys. Signed values other than negative ones are accepted; 0 for a missing key.
StatusOr<uint64_t> split_number(const GgufContents& contents, std::string_view key) {
  const GgufEntry* entry = find_entry(contents, key);
  if (entry == nullptr)
    return uint64_t{0};
  if (const auto* scalar = std::get_if<GgufScalar>(&entry->value)) {
    if (const auto* number = std::get_if<uint64_t>(scalar))
      return *number;
    if (const auto* number = std::get_if<int64_t>(scalar); number != nullptr && *number >= 0)
      return static_cast<uint64_t>(*number);
  }
  return invalid("key " + std::string(key) + " is of type " + std::string(gguf_type_name(entry->type)) +
                 " or negative, expected an unsigned integer");
}

} // namespace

StatusOr<GgufFile> GgufFile::open(const std::string& path) {
  GgufFile out;
  CORTIQ_RETURN_IF_ERROR(out.add_part(path));
  CORTIQ_RETURN_IF_ERROR(out.open_siblings());
  CORTIQ_RETURN_IF_ERROR(out.index_tensors().with_prefix(quote(path)));
  return out;
}

Status GgufFile::add_part(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  StatusOr<GgufContents> contents = parse_gguf(file.bytes(), parts_.empty() ? nullptr : &parts_[0].contents);
  if (!contents.ok())
    return contents.status().with_prefix(quote(path));
  for (Tensor& tensor : contents->tensors) {
    tensor.file = static_cast<uint32_t>(parts_.size());
    tensors_.push_back(std::move(tensor));
  }
  contents->tensors.clear();
  parts_.push_back({std::move(file), *std::move(contents)});
  return {};
}

Status GgufFile::open_siblings() {
  const std::string where = quote(path());
  const auto number_of = [&](size_t part, std::string_view key) {
    StatusOr<uint64_t> value = split_number(parts_[part].contents, key);
    return value.ok() ? value : StatusOr<uint64_t>(value.status().with_prefix(quote(file_path(part))));
  };
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t count, number_of(0, "split.count"));
  if (count <= 1)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t number, number_of(0, "split.no"));
  if (number >= count)
    return invalid(where + ": states split.no " + std::to_string(number) + " of split.count " + std::to_string(count));
  // The name counts from 1, the key from 0.
  const std::string tag = split_tag(number + 1, count);
  if (!path().ends_with(tag))
    return invalid(where + ": is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
                   ", but its name does not end in " + tag);
  const std::string stem = path().substr(0, path().size() - tag.size());
  if (number != 0)
    return invalid(where + ": is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
                   "; open the first, " + quote(stem + split_tag(1, count)));
  for (uint64_t k = 1; k < count; ++k) {
    const std::string sibling = stem + split_tag(k + 1, count);
    const std::string which = where + ": part " + std::to_string(k + 1) + " of " + std::to_string(count);
    std::error_code ignored; // what cannot be examined is told by its reader
    Status status = add_part(sibling);
    if (!status.ok())
      return status.with_prefix(
          std::filesystem::exists(std::filesystem::symlink_status(sibling, ignored)) ? which : which + " is missing");
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t its_number, number_of(k, "split.no"));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t its_count, number_of(k, "split.count"));
    if (its_number != k || its_count != count)
      return invalid(quote(sibling) + ": states split.no " + std::to_string(its_number) + " of split.count " +
                     std::to_string(its_count) + ", expected " + std::to_string(k) + " of " + std::to_string(count));
  }
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t total, number_of(0, "split.tensors.count"));
  if (total != tensors_.size())
    return invalid(where + ": split.tensors.count is " + std::to_string(total) + ", but the parts hold " +
                   std::to_string(tensors_.size()) + " tensors");
  return {};
}

Status GgufFile::index_tensors() {
  for (size_t i = 0; i < entries().size(); ++i)
    by_key_.emplace(entries()[i].key, i);
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!by_name_.emplace(tensors_[i].name, i).second)
      return invalid("the tensor " + quote(tensors_[i].name) + " stands in two parts");
  return {};
}

const Tensor* GgufFile::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

const GgufEntry* GgufFile::entry(std::string_view key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : &entries()[it->second];
}

Status GgufFile::check_model() const {
  const std::string where = quote(path());
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view type, get_string_or("general.type", "model"));
  CORTIQ_ASSIGN_OR_RETURN(const std::string_view name, get_string_or("general.architecture", ""));
  if (type == "adapter") {
    CORTIQ_ASSIGN_OR_RETURN(const std::string_view kind, get_string_or("adapter.type", "lora"));
    return unsupported(where + " is " + (kind == "lora" ? "a LoRA adapter" : "an adapter of type " + quote(kind)) +
                       " for " + quote(name) + ", not a model");
  }
  if (type == "imatrix")
    return unsupported(where + " is an importance matrix (imatrix), not a model");
  for (const ForeignArchitecture& row : kForeign)
    if (name == row.name)
      return unsupported(where + " is " + row.what);
  if (type == "mmproj")
    return unsupported(where + " is a vision or audio projector (mmproj); give the language model's file");
  if (type != "model")
    return unsupported(where + " is of general.type " + quote(type) + ", not a model");
  if (const StatusOr<std::string_view> required = architecture(); !required.ok())
    return required.status();
  if (tensors_.empty())
    return unsupported(where + " holds a vocabulary only, no tensors");
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t heads, get_u64_or(std::string(name) + ".nextn_predict_layers", 0));
  if (heads > 0 && find("token_embd.weight") == nullptr)
    return unsupported(where + " holds prediction heads only (a draft model), not the trunk of " + quote(name));
  return {};
}

} // namespace cortiq::formats

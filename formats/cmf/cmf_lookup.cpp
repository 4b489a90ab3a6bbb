#include "formats/cmf/cmf_lookup.h"

#include <cstring>
#include <set>

#include "formats/checked_math.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

template <class T>
T load(const Tensor& tensor, uint64_t i) {
  T value;
  std::memcpy(&value, tensor.data.data() + i * sizeof value, sizeof value);
  return value;
}

struct LookupSizes {
  uint64_t keys = 0, entries = 0, langs = 0;
};

Status check_unique(const std::vector<std::string>& words, const std::string& name) {
  std::set<std::string_view> seen;
  for (const std::string& word : words)
    if (!seen.insert(word).second)
      return invalid(name + " has " + quote(word) + " twice");
  return {};
}

StatusOr<LookupSizes> read_record(const Json& lookup, const std::string& where) {
  uint32_t keys = 0;
  uint32_t entries = 0;
  std::string norm, policy;
  std::vector<std::string> langs, fields;
  JsonFields f(lookup, where);
  f.required("entries", entries);
  f.required("keys", keys);
  f.required("key_norm", norm);
  f.required("langs", langs);
  f.required("fields", fields);
  f.required("policy", policy); // an unknown one counts as router_and_key
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (entries == 0 || keys == 0 || langs.empty())
    return invalid(where + " has no entries, keys or langs");
  if (norm != "cmf-key-v2")
    return invalid(where + ".key_norm is " + quote(norm) + ", expected cmf-key-v2");
  CORTIQ_RETURN_IF_ERROR(check_unique(langs, where + ".langs"));
  CORTIQ_RETURN_IF_ERROR(check_unique(fields, where + ".fields"));
  return LookupSizes{keys, entries, langs.size()};
}

/// The vector `name` of `count` values of dtype `type`; any count where none is given.
StatusOr<const Tensor*> find_vector(const CmfFile& file, const std::string& name, CodecId type,
                                    std::optional<uint64_t> count) {
  const Tensor* tensor = file.find(name);
  if (!tensor)
    return invalid("tensor " + quote(name) + " is missing");
  if (tensor->shape.size() != 1 || !tensor->codec || tensor->codec->id != type || (count && tensor->shape[0] != *count))
    return invalid("tensor " + quote(name) + " is a " + std::string(tensor->type_name) + " of shape " +
                   shape_text(tensor->shape) + ", expected a vector of " + (count ? std::to_string(*count) + " " : "") +
                   std::string(codec_info(type).name));
  return tensor;
}

/// Every slot is a JSON object that begins and ends between characters.
Status check_slots(const Tensor& offsets, const Tensor& text) {
  const std::string_view all(reinterpret_cast<const char*>(text.data.data()), text.data.size());
  if (!is_utf8(all))
    return invalid("tensor " + quote(text.name) + " is not UTF-8");
  uint64_t begin = load<uint64_t>(offsets, 0);
  for (uint64_t i = 1; i < offsets.shape[0]; ++i) {
    const uint64_t end = load<uint64_t>(offsets, i);
    if (end < begin || end > all.size())
      return invalid("tensor " + quote(offsets.name) + " has " + std::to_string(end) + " behind " +
                     std::to_string(begin) + ", and the text has " + std::to_string(all.size()) + " bytes");
    // Text cut inside a character is not UTF-8 any more, which the parser refuses.
    const std::string what = "slot " + std::to_string(i - 1) + " of " + quote(text.name);
    CORTIQ_ASSIGN_OR_RETURN(const Json slot, parse_json(all.substr(begin, end - begin), what));
    if (!slot.is_object())
      return invalid(what + " is not a JSON object");
    begin = end;
  }
  return {};
}

} // namespace

Status check_cmf_lookup(const CmfFile& file, const Json& lookup, const std::string& id, const std::string& where) {
  CORTIQ_ASSIGN_OR_RETURN(const LookupSizes sizes, read_record(lookup, where));
  const std::optional<uint64_t> offsets = checked_add(checked_mul(sizes.entries, sizes.langs), 1);
  const std::string prefix = "skill." + id + ".lookup.";
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* hash, find_vector(file, prefix + "keys.hash", CodecId::kU64, sizes.keys));
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* entry, find_vector(file, prefix + "keys.entry", CodecId::kU32, sizes.keys));
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* off,
                          find_vector(file, prefix + "entries.off", CodecId::kU64, offsets.value_or(UINT64_MAX)));
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* text, find_vector(file, prefix + "text", CodecId::kU8, std::nullopt));
  for (uint64_t i = 1; i < sizes.keys; ++i)
    if (load<uint64_t>(*hash, i) <= load<uint64_t>(*hash, i - 1))
      return invalid("tensor " + quote(hash->name) + " is not strictly ascending at " + std::to_string(i));
  for (uint64_t i = 0; i < sizes.keys; ++i)
    if (load<uint32_t>(*entry, i) >= sizes.entries)
      return invalid("tensor " + quote(entry->name) + " names entry " + std::to_string(load<uint32_t>(*entry, i)) +
                     " of " + std::to_string(sizes.entries));
  return check_slots(*off, *text);
}

} // namespace cortiq::formats

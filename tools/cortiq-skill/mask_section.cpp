#include "tools/cortiq-skill/mask_section.h"

#include <algorithm>
#include <cstring>

#include "formats/checked_math.h"
#include "formats/quote.h"

namespace cortiq::skill {
namespace {

using formats::CmfArch;
using formats::CmfFile;
using formats::quote;

constexpr uint64_t kBlobAlignment = 8;
constexpr uint64_t kHead = 8;        // count and length of the JSON
constexpr uint64_t kOffsetRoom = 20; // digits of an offset

/// The sizes that a mask's bits follow, in words.
std::string sizes(const CmfArch& arch) {
  std::string text = std::to_string(arch.num_layers) + " layers of " + std::to_string(arch.intermediate_size) +
                     " neurons and " + std::to_string(arch.num_attention_heads) + " heads";
  if (arch.num_loops != 1)
    text += ", run " + std::to_string(arch.num_loops) + " times";
  return arch.moe ? text + ", " + std::to_string(arch.moe->num_experts) + " experts" : text;
}

/// `count` rows of `width` set bits.
void add_open_rows(std::vector<uint8_t>& bits, uint64_t count, uint64_t width) {
  for (uint64_t row = 0; row < count; ++row)
    for (uint64_t first = 0; first < width; first += 8)
      bits.push_back(static_cast<uint8_t>(width - first >= 8 ? 0xFF : (1 << (width - first)) - 1));
}

MaskPart open_mask(const CmfArch& arch, const std::string& name) {
  MaskPart out;
  add_open_rows(out.bits, arch.num_layers, arch.intermediate_size);
  add_open_rows(out.bits, arch.num_layers, arch.num_attention_heads);
  add_open_rows(out.bits, 1, arch.num_layers);
  out.entry = {
      {"task_id", 0}, {"name", name}, {"description", "everything is on"}, {"sparsity", 0.0}, {"priority", "Fallback"}};
  return out;
}

uint64_t free_task_id(const MaskSection& masks, uint64_t wanted) {
  uint64_t next = 0;
  bool taken = false;
  for (const MaskPart& mask : masks.masks) {
    const uint64_t id = mask.entry.at("task_id").get<uint64_t>();
    taken |= id == wanted;
    next = std::max(next, id + 1);
  }
  return taken ? next : wanted;
}

} // namespace

const MaskPart* MaskSection::find(const std::string& name) const {
  const auto at = std::find_if(masks.begin(), masks.end(), [&](const MaskPart& mask) { return mask.name() == name; });
  return at == masks.end() ? nullptr : &*at;
}

std::vector<uint8_t> MaskSection::bytes() const {
  if (masks.empty())
    return {};
  nlohmann::json meta = {{"default_task", default_task}, {"masks", nlohmann::json::array()}};
  for (const MaskPart& mask : masks) {
    nlohmann::json entry = mask.entry;
    entry["blob_off"] = 0;
    entry["blob_len"] = mask.bits.size();
    meta["masks"].push_back(std::move(entry));
  }
  // The text is padded to a length that does not depend on the offsets in it.
  const uint64_t room =
      formats::ceil_div(kHead + meta.dump().size() + kOffsetRoom * masks.size(), kBlobAlignment) * kBlobAlignment;
  uint64_t at = room;
  for (size_t i = 0; i < masks.size(); ++i) {
    meta["masks"][i]["blob_off"] = at;
    at += formats::ceil_div(masks[i].bits.size(), kBlobAlignment) * kBlobAlignment;
  }
  std::string text = meta.dump();
  text.resize(room - kHead, ' ');
  const uint32_t head[] = {static_cast<uint32_t>(masks.size()), static_cast<uint32_t>(text.size())};
  std::vector<uint8_t> out(at);
  std::memcpy(out.data(), head, kHead);
  std::memcpy(out.data() + kHead, text.data(), text.size());
  for (size_t i = 0; i < masks.size(); ++i)
    std::copy(masks[i].bits.begin(), masks[i].bits.end(),
              out.begin() + static_cast<std::ptrdiff_t>(meta["masks"][i]["blob_off"].get<uint64_t>()));
  return out;
}

MaskSection read_masks(const CmfFile& file) {
  MaskSection out;
  if (!file.masks())
    return out;
  // CmfFile checked the section when it was opened.
  const formats::CmfEnvelope::Section& where = file.envelope().masks;
  const std::span<const uint8_t> section = file.file_bytes(0).subspan(where.offset, where.size);
  uint32_t length = 0;
  std::memcpy(&length, section.data() + 4, sizeof(length));
  const auto text = section.subspan(kHead, length);
  const nlohmann::json meta = nlohmann::json::parse(text.begin(), text.end());
  out.default_task = file.masks()->default_task;
  for (const nlohmann::json& entry : meta.at("masks")) {
    const auto bits = section.subspan(entry.at("blob_off").get<uint64_t>(), entry.at("blob_len").get<uint64_t>());
    out.masks.push_back({entry, {bits.begin(), bits.end()}});
  }
  return out;
}

StatusOr<size_t> mask_of(const CmfFile& file, const MaskSection& masks, const std::string& task) {
  std::string known;
  for (size_t i = 0; i < masks.masks.size(); ++i) {
    if (masks.masks[i].name() == task)
      return i;
    known += (known.empty() ? "" : ", ") + formats::printable(masks.masks[i].name());
  }
  return invalid(quote(file.path()) + " has no mask " + quote(task) + "; it has: " + (known.empty() ? "none" : known));
}

Status add_mask(MaskSection& masks, const MaskPart& mask, const CmfFile& from, const CmfFile& base) {
  if (const std::string ours = sizes(base.arch()), theirs = sizes(from.arch()); ours != theirs)
    return invalid("mask " + quote(mask.name()) + " of " + quote(from.path()) + " is for " + theirs + ", " +
                   quote(base.path()) + " has " + ours);
  if (const MaskPart* known = masks.find(mask.name())) {
    if (known->bits == mask.bits)
      return {};
    return invalid(quote(base.path()) + " has another mask " + quote(mask.name()) + "; detach that first");
  }
  if (masks.masks.empty()) {
    std::string name = mask.name() == "all" ? "everything" : "all";
    masks.default_task = name;
    masks.masks.push_back(open_mask(base.arch(), name));
  }
  MaskPart added = mask;
  added.entry["task_id"] = free_task_id(masks, mask.entry.at("task_id").get<uint64_t>());
  if (added.entry.at("priority") == "Fallback")
    added.entry["priority"] = "Normal";
  masks.masks.push_back(std::move(added));
  return {};
}

} // namespace cortiq::skill

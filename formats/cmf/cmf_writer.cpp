#include "formats/cmf/cmf_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/atomic_file.h"
#include "formats/checked_math.h"
#include "formats/cmf/cmf_directory.h"
#include "formats/cmf/cmf_dtype.h"
#include "formats/cmf/cmf_envelope.h"
#include "formats/cmf/cmf_header.h"
#include "formats/cmf/cmf_masks.h"
#include "formats/cmf/hash64.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

template <class T>
void store(std::span<uint8_t> into, size_t at, T value) {
  std::memcpy(into.data() + at, &value, sizeof value);
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// Where a payload that follows `end` bytes of data goes.
uint64_t place(uint64_t end, uint64_t size) {
  const uint64_t alignment = size < kCmfLargePayload ? kCmfTensorAlignment : kCmfDataAlignment;
  return ceil_div(end, alignment) * alignment;
}

} // namespace

CmfWriter::CmfWriter(Json header) : header_(std::make_unique<Json>(std::move(header))) {}
CmfWriter::~CmfWriter() = default;

void CmfWriter::add_tensor(std::string name, int dtype, std::vector<uint64_t> shape, std::span<const uint8_t> payload) {
  entries_.push_back({std::move(name), dtype, std::move(shape), payload});
}

Status CmfWriter::check_entries() const {
  std::set<std::string_view> names;
  for (const Entry& entry : entries_) {
    const std::string where = "tensor " + quote(entry.name);
    if (entry.name.empty() || entry.name.size() > std::numeric_limits<uint16_t>::max() || !is_utf8(entry.name))
      return invalid(where + " needs a name of 1 to 65535 bytes of UTF-8");
    if (!names.insert(entry.name).second)
      return invalid(where + " was added twice");
    const bool fits = std::all_of(entry.shape.begin(), entry.shape.end(),
                                  [](uint64_t d) { return d <= std::numeric_limits<uint32_t>::max(); });
    if (entry.shape.size() > kCmfMaxDimensions || !fits)
      return invalid(where + " has the shape " + shape_text(entry.shape) + ", which a directory cannot hold");
    Tensor tensor;
    tensor.name = entry.name;
    tensor.type_code = entry.dtype;
    tensor.shape = entry.shape;
    tensor.data = entry.payload;
    CORTIQ_RETURN_IF_ERROR(resolve_cmf_dtype(tensor));
  }
  return {};
}

std::vector<uint8_t> CmfWriter::directory(const std::vector<uint64_t>& offsets) const {
  const uint64_t pool = kCmfDirectoryHead + entries_.size() * kCmfRecordBytes;
  std::vector<uint8_t> out(pool);
  store<uint64_t>(out, 0, entries_.size());
  store<uint64_t>(out, 8, pool);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const std::span<uint8_t> record(out.data() + kCmfDirectoryHead + i * kCmfRecordBytes, kCmfRecordBytes);
    store(record, 0, static_cast<uint32_t>(out.size() - pool));
    store(record, 4, static_cast<uint16_t>(entry.name.size()));
    record[6] = static_cast<uint8_t>(entry.dtype);
    record[7] = static_cast<uint8_t>(entry.shape.size());
    for (size_t d = 0; d < entry.shape.size(); ++d)
      store(record, 8 + 4 * d, static_cast<uint32_t>(entry.shape[d]));
    store(record, 32, offsets[i]);
    store<uint64_t>(record, 40, entry.payload.size());
    store(record, 48, hash64(entry.payload));
    out.insert(out.end(), entry.name.begin(), entry.name.end());
  }
  return out;
}

std::string CmfWriter::header_text() const {
  Json header = *header_;
  header["format"] = "cmf";
  header["version"] = 2;
  Json hashes = Json::object();
  const auto add = [&](const char* key, std::span<const uint8_t> section) {
    if (!section.empty())
      hashes[key] = hex64(hash64(section));
  };
  add("masks", masks_);
  add("vocab", vocab_);
  if (hashes.empty())
    header.erase("section_hashes");
  else
    header["section_hashes"] = std::move(hashes);
  // Strings that came through parse_json are UTF-8 already; the handler keeps other callers' mistakes from throwing.
  return header.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status CmfWriter::write(const std::string& path) const {
  if (!header_->is_object())
    return invalid("the header of a CMF file has to be a JSON object");
  CORTIQ_RETURN_IF_ERROR(check_entries());
  std::vector<uint64_t> offsets;
  uint64_t data_size = 0;
  for (const Entry& entry : entries_) {
    offsets.push_back(place(data_size, entry.payload.size()));
    data_size = offsets.back() + entry.payload.size();
  }
  const std::string header = header_text();
  CORTIQ_ASSIGN_OR_RETURN(const CmfHeader parsed, parse_cmf_header(header, data_size));
  if (!masks_.empty()) {
    CORTIQ_ASSIGN_OR_RETURN([[maybe_unused]] const CmfMasks checked, parse_cmf_masks(masks_, parsed.arch));
  }
  const std::vector<uint8_t> records = directory(offsets);

  CmfEnvelope envelope;
  envelope.required_features = features(parsed);
  uint64_t end = kCmfEnvelopeBytes;
  const auto append = [&](CmfEnvelope::Section& section, uint64_t size) {
    if (size > 0)
      section = {end, size};
    end += size;
  };
  append(envelope.header, header.size());
  append(envelope.directory, records.size());
  end = ceil_div(end, kCmfDataAlignment) * kCmfDataAlignment;
  append(envelope.data, data_size);
  append(envelope.masks, masks_.size());
  append(envelope.vocab, vocab_.size());
  envelope.header_hash = hash64(bytes_of(header));
  envelope.directory_hash = hash64(records);
  return write_sections(path, envelope, header, records, offsets);
}

uint32_t CmfWriter::features(const CmfHeader& header) const {
  uint32_t bits = feature_mask(CmfFeature::kTensorDir) | header.content_features;
  if (!masks_.empty()) {
    bits |= feature_mask(CmfFeature::kBinaryMasks);
    if (header.arch.num_loops > 1)
      bits |= feature_mask(CmfFeature::kLoopMasks);
  }
  // vbit and q8_2f.
  if (std::any_of(entries_.begin(), entries_.end(), [](const Entry& e) { return e.dtype == 8 || e.dtype == 9; }))
    bits |= feature_mask(CmfFeature::kQuant2F);
  return bits;
}

Status CmfWriter::write_sections(const std::string& path, const CmfEnvelope& envelope, const std::string& header,
                                 std::span<const uint8_t> records, const std::vector<uint64_t>& offsets) const {
  uint8_t head[kCmfEnvelopeBytes] = {};
  store_cmf_envelope(envelope, head);
  CORTIQ_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(file.write(head));
  CORTIQ_RETURN_IF_ERROR(file.write(header));
  CORTIQ_RETURN_IF_ERROR(file.write(records));
  CORTIQ_RETURN_IF_ERROR(file.pad_to(kCmfDataAlignment));
  const uint64_t data_start = file.size();
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::vector<uint8_t> gap(data_start + offsets[i] - file.size());
    CORTIQ_RETURN_IF_ERROR(file.write(gap));
    CORTIQ_RETURN_IF_ERROR(file.write(entries_[i].payload));
  }
  CORTIQ_RETURN_IF_ERROR(file.write(masks_));
  CORTIQ_RETURN_IF_ERROR(file.write(vocab_));
  return file.commit();
}

} // namespace cortiq::formats

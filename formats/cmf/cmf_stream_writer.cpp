#include "formats/cmf/cmf_stream_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/checked_math.h"
#include "formats/cmf/cmf_directory.h"
#include "formats/cmf/cmf_envelope.h"
#include "formats/cmf/cmf_header.h"
#include "formats/cmf/hash64.h"
#include "formats/mapped_file.h"
#include "formats/page_release.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

template <class T>
void store(std::vector<uint8_t>& into, uint64_t at, T value) {
  std::memcpy(into.data() + at, &value, sizeof value);
}

Status check_tensors(std::span<const CmfStreamTensor> tensors) {
  std::set<std::string_view> names;
  for (const CmfStreamTensor& tensor : tensors) {
    const std::string where = "tensor " + quote(tensor.name);
    if (tensor.name.empty() || tensor.name.size() > std::numeric_limits<uint16_t>::max() || !is_utf8(tensor.name))
      return invalid(where + " needs a name of 1 to 65535 bytes of UTF-8");
    if (!names.insert(tensor.name).second)
      return invalid(where + " is there twice");
    const bool fits = std::all_of(tensor.shape.begin(), tensor.shape.end(),
                                  [](uint64_t d) { return d <= std::numeric_limits<uint32_t>::max(); });
    if (tensor.shape.size() > kCmfMaxDimensions || !fits)
      return invalid(where + " has the shape " + shape_text(tensor.shape) + ", which a directory cannot hold");
  }
  return {};
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

} // namespace

CmfStreamWriter::CmfStreamWriter(AtomicFile file) : file_(std::move(file)) {}
CmfStreamWriter::CmfStreamWriter(CmfStreamWriter&&) noexcept = default;
CmfStreamWriter& CmfStreamWriter::operator=(CmfStreamWriter&&) noexcept = default;
CmfStreamWriter::~CmfStreamWriter() = default;

StatusOr<CmfStreamWriter> CmfStreamWriter::create(const std::string& path, Json header,
                                                  std::vector<CmfStreamTensor> tensors, std::vector<uint8_t> vocab) {
  CORTIQ_RETURN_IF_ERROR(check_tensors(tensors));
  header["format"] = "cmf";
  header["version"] = 2;
  header.erase("section_hashes");
  if (!vocab.empty())
    header["section_hashes"] = {{"vocab", hex64(hash64(vocab))}};
  CORTIQ_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  CmfStreamWriter out(std::move(file));
  // Strings that came through parse_json are UTF-8 already; the handler keeps other callers' mistakes from throwing.
  out.header_ = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  CORTIQ_ASSIGN_OR_RETURN([[maybe_unused]] const CmfHeader parsed, parse_cmf_header(out.header_, UINT64_MAX));
  out.directory_size_ = kCmfDirectoryHead + tensors.size() * kCmfRecordBytes;
  for (const CmfStreamTensor& tensor : tensors)
    out.directory_size_ += tensor.name.size();
  out.tensors_ = std::move(tensors);
  out.vocab_ = std::move(vocab);
  out.data_offset_ =
      ceil_div(kCmfEnvelopeBytes + out.header_.size() + out.directory_size_, kCmfDataAlignment) * kCmfDataAlignment;
  CORTIQ_RETURN_IF_ERROR(out.file_.extend_to(out.data_offset_));
  return out;
}

Status CmfStreamWriter::begin_tensor(uint64_t size_hint) {
  if (extents_.size() == tensors_.size())
    return internal_error("more payloads than tensors");
  const uint64_t alignment = size_hint < kCmfLargePayload ? kCmfTensorAlignment : kCmfDataAlignment;
  CORTIQ_RETURN_IF_ERROR(file_.extend_to(ceil_div(file_.size(), alignment) * alignment));
  extents_.push_back({file_.size(), 0});
  return {};
}

Status CmfStreamWriter::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  Extent& extent = extents_.back();
  const std::optional<uint64_t> end = checked_add(offset, bytes.size());
  if (!end || !checked_add(extent.offset, *end))
    return internal_error("a payload beyond 64 bits");
  CORTIQ_RETURN_IF_ERROR(file_.extend_to(extent.offset + *end));
  extent.size = std::max(extent.size, *end);
  return file_.write_at(extent.offset + offset, bytes);
}

std::vector<uint8_t> CmfStreamWriter::directory(std::span<const uint8_t> file, bool hash_payloads) const {
  const uint64_t pool = kCmfDirectoryHead + tensors_.size() * kCmfRecordBytes;
  std::vector<uint8_t> out(directory_size_);
  store<uint64_t>(out, 0, tensors_.size());
  store<uint64_t>(out, 8, pool);
  uint64_t name_at = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const CmfStreamTensor& tensor = tensors_[i];
    const Extent& extent = extents_[i];
    const uint64_t record = kCmfDirectoryHead + i * kCmfRecordBytes;
    store(out, record, static_cast<uint32_t>(name_at));
    store(out, record + 4, static_cast<uint16_t>(tensor.name.size()));
    out[record + 6] = static_cast<uint8_t>(tensor.dtype);
    out[record + 7] = static_cast<uint8_t>(tensor.shape.size());
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      store(out, record + 8 + 4 * d, static_cast<uint32_t>(tensor.shape[d]));
    store(out, record + 32, extent.offset - data_offset_);
    store(out, record + 40, extent.size);
    const std::span<const uint8_t> payload = file.subspan(extent.offset, extent.size);
    if (hash_payloads) {
      store(out, record + 48, hash64(payload));
      release_pages(payload);
    }
    std::copy(tensor.name.begin(), tensor.name.end(), out.begin() + static_cast<ptrdiff_t>(pool + name_at));
    name_at += tensor.name.size();
  }
  return out;
}

Status CmfStreamWriter::finish(bool hash_payloads) {
  if (extents_.size() != tensors_.size())
    return internal_error("fewer payloads than tensors");
  CmfEnvelope envelope;
  envelope.header = {kCmfEnvelopeBytes, header_.size()};
  envelope.directory = {kCmfEnvelopeBytes + header_.size(), directory_size_};
  envelope.data = {data_offset_, file_.size() - data_offset_};
  if (!vocab_.empty())
    envelope.vocab = {file_.size(), vocab_.size()};
  CORTIQ_RETURN_IF_ERROR(file_.write(vocab_));

  std::vector<uint8_t> records;
  {
    CORTIQ_ASSIGN_OR_RETURN(const MappedFile written, MappedFile::open(file_.temporary_path()));
    records = directory(written.bytes(), hash_payloads);
  }
  CORTIQ_ASSIGN_OR_RETURN(const CmfHeader parsed, parse_cmf_header(header_, envelope.data.size));
  envelope.required_features = feature_mask(CmfFeature::kTensorDir) | parsed.content_features;
  // vbit and q8_2f.
  if (std::any_of(tensors_.begin(), tensors_.end(), [](const auto& t) { return t.dtype == 8 || t.dtype == 9; }))
    envelope.required_features |= feature_mask(CmfFeature::kQuant2F);
  envelope.header_hash = hash64(bytes_of(header_));
  envelope.directory_hash = hash64(records);
  uint8_t head[kCmfEnvelopeBytes] = {};
  store_cmf_envelope(envelope, head);
  CORTIQ_RETURN_IF_ERROR(file_.write_at(envelope.header.offset, bytes_of(header_)));
  CORTIQ_RETURN_IF_ERROR(file_.write_at(envelope.directory.offset, records));
  return file_.write_at(0, head);
}

} // namespace cortiq::formats

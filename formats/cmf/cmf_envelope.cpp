#include "formats/cmf/cmf_envelope.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "formats/checked_math.h"

namespace cortiq::formats {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {0x43, 0x4D, 0x46, 0x01};
constexpr uint32_t kVersion = 2;

constexpr uint32_t kKnownFeatures = feature_mask(CmfFeature::kTensorDir) | feature_mask(CmfFeature::kBinaryMasks) |
                                    feature_mask(CmfFeature::kQuant2F) | feature_mask(CmfFeature::kLoopMasks) |
                                    feature_mask(CmfFeature::kSkillFile) | feature_mask(CmfFeature::kPrismHadamard) |
                                    feature_mask(CmfFeature::kPrismAffine) | feature_mask(CmfFeature::kSkillsV2) |
                                    feature_mask(CmfFeature::kRouterV2) | feature_mask(CmfFeature::kDecision) |
                                    feature_mask(CmfFeature::kBoundedState) | feature_mask(CmfFeature::kGenome) |
                                    feature_mask(CmfFeature::kBlockDiffusion);

/// A section of the envelope: where its two words stand, and the member that holds them.
struct SectionRow {
  const char* name;
  size_t at;
  CmfEnvelope::Section CmfEnvelope::* member;
  bool required;
};

constexpr std::array kSections = {
    SectionRow{"header", 0x10, &CmfEnvelope::header, true},
    SectionRow{"directory", 0x20, &CmfEnvelope::directory, true},
    SectionRow{"data", 0x30, &CmfEnvelope::data, false},
    SectionRow{"masks", 0x40, &CmfEnvelope::masks, false},
    SectionRow{"vocab", 0x50, &CmfEnvelope::vocab, false},
    SectionRow{"index", 0x60, &CmfEnvelope::index, false},
};

template <class T>
T load(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string bit_list(uint32_t bits) {
  std::string out;
  for (int i = 0; i < 32; ++i)
    if ((bits >> i) & 1)
      out += (out.empty() ? "" : ", ") + std::to_string(i);
  return out;
}

Status check_section(const SectionRow& row, const CmfEnvelope::Section& section, uint64_t file_size) {
  if (section.size == 0)
    return row.required ? invalid(std::string("the ") + row.name + " section is empty") : Status();
  const std::string range = std::to_string(section.offset) + " + " + std::to_string(section.size);
  if (!checked_add(section.offset, section.size))
    return invalid(std::string("the ") + row.name + " section's offset + length (" + range + ") overflows 64 bits");
  if (!range_fits(section.offset, section.size, file_size))
    return invalid(std::string("the ") + row.name + " section (" + range + ") ends past the end of the file (" +
                   std::to_string(file_size) + " bytes)");
  return {};
}

} // namespace

StatusOr<CmfEnvelope> parse_cmf_envelope(std::span<const uint8_t> file) {
  if (file.size() < kCmfEnvelopeBytes)
    return invalid("the file has " + std::to_string(file.size()) + " bytes and is shorter than the 128-byte envelope");
  if (!std::equal(kMagic.begin(), kMagic.end(), file.begin()))
    return invalid("wrong magic: a CMF file starts with 43 4d 46 01; cortiq-convert makes one of a GGUF file");
  if (const uint32_t version = load<uint32_t>(file, 4); version != kVersion)
    return invalid("unsupported version " + std::to_string(version) + ", expected " + std::to_string(kVersion));
  CmfEnvelope out;
  out.flags = load<uint32_t>(file, 8);
  out.required_features = load<uint32_t>(file, 12);
  if (const uint32_t unknown = out.required_features & ~kKnownFeatures; unknown != 0)
    return unsupported("unknown required feature bit " + bit_list(unknown) + ": a newer reader is needed");
  for (const SectionRow& row : kSections) {
    out.*row.member = {load<uint64_t>(file, row.at), load<uint64_t>(file, row.at + 8)};
    CORTIQ_RETURN_IF_ERROR(check_section(row, out.*row.member, file.size()));
  }
  if (out.data.size > 0 && out.data.offset % kCmfDataAlignment != 0)
    return invalid("the data offset " + std::to_string(out.data.offset) + " is not a multiple of 4096");
  out.header_hash = load<uint64_t>(file, 0x70);
  out.directory_hash = load<uint64_t>(file, 0x78);
  return out;
}

void store_cmf_envelope(const CmfEnvelope& envelope, std::span<uint8_t, kCmfEnvelopeBytes> out) {
  const auto store = [&](size_t at, auto value) { std::memcpy(out.data() + at, &value, sizeof value); };
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  store(4, kVersion);
  store(8, envelope.flags);
  store(12, envelope.required_features);
  for (const SectionRow& row : kSections) {
    store(row.at, (envelope.*row.member).offset);
    store(row.at + 8, (envelope.*row.member).size);
  }
  store(0x70, envelope.header_hash);
  store(0x78, envelope.directory_hash);
}

} // namespace cortiq::formats

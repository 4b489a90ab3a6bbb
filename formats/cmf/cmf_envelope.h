#pragma once

// The fixed head of a CMF file (specification 1.1) and its feature bits (1.2).

#include <cstdint>
#include <span>

#include "formats/status.h"

namespace cortiq::formats {

/// Bits of required_features.
enum class CmfFeature : uint8_t {
  kTensorDir = 0,
  kBinaryMasks = 1,
  kQuant2F = 2,
  kLoopMasks = 5,
  kSkillFile = 6,
  kPrismHadamard = 7,
  kPrismAffine = 8,
  kSkillsV2 = 9,
  kRouterV2 = 10,
  kDecision = 11,
  kBoundedState = 12,
  kGenome = 13,
  kBlockDiffusion = 15,
};

constexpr uint32_t feature_mask(CmfFeature bit) {
  return uint32_t{1} << static_cast<uint8_t>(bit);
}

inline constexpr uint64_t kCmfEnvelopeBytes = 128;
/// The data section starts at a multiple of this; payloads of kCmfLargePayload bytes and more are placed at multiples
/// of it.
inline constexpr uint64_t kCmfDataAlignment = 4096;
/// Every payload starts at a multiple of this.
inline constexpr uint64_t kCmfTensorAlignment = 64;
inline constexpr uint64_t kCmfLargePayload = 16384;

/// The envelope's fields.
struct CmfEnvelope {
  struct Section {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  uint32_t flags = 0;
  uint32_t required_features = 0;
  Section header, directory, data, masks, vocab, index;
  uint64_t header_hash = 0; ///< 0 = absent
  uint64_t directory_hash = 0;

  bool has(CmfFeature bit) const { return (required_features & feature_mask(bit)) != 0; }
};

/// Reads the envelope of a whole file and checks magic, version, feature bits and that every section lies inside the
/// file.
StatusOr<CmfEnvelope> parse_cmf_envelope(std::span<const uint8_t> file);

/// The 128 bytes of `envelope`, for writers.
void store_cmf_envelope(const CmfEnvelope& envelope, std::span<uint8_t, kCmfEnvelopeBytes> out);

} // namespace cortiq::formats

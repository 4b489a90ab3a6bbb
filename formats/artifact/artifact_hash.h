#pragma once

// The hashes of an artifact: BLAKE2b-256, plain and as a tree of leaves.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cortiq::formats {

using Hash256 = std::array<uint8_t, 32>;

/// BLAKE2b-256 of `bytes`.
Hash256 hash256(std::span<const uint8_t> bytes);

/// BLAKE2b-256 of bytes that come one piece after the other.
class Hasher256 {
public:
  Hasher256();
  ~Hasher256();
  Hasher256(Hasher256&& other) noexcept;
  Hasher256& operator=(Hasher256&& other) noexcept;
  void add(std::span<const uint8_t> bytes);
  /// Of all that was added; the object is spent afterwards.
  Hash256 finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// BLAKE2b-256 of an artifact's first page with the header_hash field taken as zero. `page` has kArtifactPage bytes.
Hash256 header_page_hash(std::span<const uint8_t> page);

/// The hash of each kWeightLeafBytes piece of `weights` (the last may be shorter), 32 bytes a leaf, computed by up to
/// `threads` threads.
std::vector<uint8_t> leaf_hashes(std::span<const uint8_t> weights, unsigned threads);

} // namespace cortiq::formats

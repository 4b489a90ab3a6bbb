#include "formats/artifact/artifact_hash.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <sodium.h>
#include <thread>

#include "formats/artifact/artifact_file.h"

namespace cortiq::formats {

Hash256 hash256(std::span<const uint8_t> bytes) {
  // Chooses the implementation for this CPU; without it the plain one works, at half the speed.
  [[maybe_unused]] static const int chosen = sodium_init();
  Hash256 hash;
  crypto_generichash(hash.data(), hash.size(), bytes.data(), bytes.size(), nullptr, 0);
  return hash;
}

struct Hasher256::State {
  crypto_generichash_state hash;
};

Hasher256::Hasher256() : state_(std::make_unique<State>()) {
  [[maybe_unused]] static const int chosen = sodium_init();
  crypto_generichash_init(&state_->hash, nullptr, 0, sizeof(Hash256));
}
Hasher256::~Hasher256() = default;
Hasher256::Hasher256(Hasher256&& other) noexcept = default;
Hasher256& Hasher256::operator=(Hasher256&& other) noexcept = default;

void Hasher256::add(std::span<const uint8_t> bytes) {
  crypto_generichash_update(&state_->hash, bytes.data(), bytes.size());
}

Hash256 Hasher256::finish() {
  Hash256 hash;
  crypto_generichash_final(&state_->hash, hash.data(), hash.size());
  return hash;
}

Hash256 header_page_hash(std::span<const uint8_t> page) {
  std::array<uint8_t, kArtifactPage> copy;
  std::memcpy(copy.data(), page.data(), copy.size());
  std::memset(copy.data() + kHeaderOffset + offsetof(ArtifactHeader, header_hash), 0, sizeof(Hash256));
  return hash256(copy);
}

std::vector<uint8_t> leaf_hashes(std::span<const uint8_t> weights, unsigned threads) {
  const uint64_t leaves = (weights.size() + kWeightLeafBytes - 1) / kWeightLeafBytes;
  std::vector<uint8_t> out(leaves * sizeof(Hash256));
  std::atomic<uint64_t> cursor{0};
  auto work = [&] {
    for (uint64_t leaf; (leaf = cursor.fetch_add(1)) < leaves;) {
      const uint64_t begin = leaf * kWeightLeafBytes;
      const Hash256 hash = hash256(weights.subspan(begin, std::min(kWeightLeafBytes, weights.size() - begin)));
      std::memcpy(out.data() + leaf * hash.size(), hash.data(), hash.size());
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads && i < leaves; ++i)
    others.emplace_back(work);
  work();
  for (std::thread& thread : others)
    thread.join();
  return out;
}

} // namespace cortiq::formats

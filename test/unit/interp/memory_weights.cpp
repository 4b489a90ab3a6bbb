#include "test/unit/interp/memory_weights.h"

#include <cstring>
#include <random>

namespace cortiq::cmf {

namespace {

// f32 values stand as they are. Blocks with half-precision scales get random codes and scales near 2^-6: every 16-bit
// word that could be a scale is kept in that range by construction of the codecs below.
std::vector<uint8_t> randomPayload(WeightOp op) {
  const WeightType type = op.getType();
  const formats::Codec& codec = type.getCodec();
  std::mt19937 random(static_cast<uint32_t>(llvm::hash_value(op.getName())));
  const int64_t rows = type.isMatrix() ? sourceRows(op) : 1, cols = type.isMatrix() ? type.getCols() : sourceRows(op);
  std::vector<uint8_t> bytes(*codec.payload_bytes(codec, rows, cols));
  if (codec.id == formats::CodecId::kF32) {
    for (size_t i = 0; i < bytes.size(); i += 4) {
      const float value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
      std::memcpy(bytes.data() + i, &value, 4);
    }
    return bytes;
  }
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(random());
  if (codec.id == formats::CodecId::kQ8_0 || codec.id == formats::CodecId::kQ4_0)
    for (size_t block = 0; block < bytes.size(); block += codec.block_bytes) {
      const uint16_t scale = formats::f32_to_f16(1.0f / 64 + static_cast<float>(random() % 64) / 4096);
      std::memcpy(bytes.data() + block, &scale, 2);
    }
  if (codec.id == formats::CodecId::kF16)
    for (size_t i = 0; i < bytes.size(); i += 2) {
      const uint16_t value = formats::f32_to_f16(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 4000);
      std::memcpy(bytes.data() + i, &value, 2);
    }
  return bytes;
}

} // namespace

void MemoryWeights::state(const std::string& name, std::vector<float> values) {
  std::vector<uint8_t>& bytes = payloads_[name];
  bytes.resize(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
}

StatusOr<std::span<const uint8_t>> MemoryWeights::payload(WeightOp op) {
  auto [it, fresh] = payloads_.try_emplace(op.getName().str());
  if (fresh)
    it->second = randomPayload(op);
  return std::span<const uint8_t>(it->second);
}

} // namespace cortiq::cmf

#include "runtime/vulkan/slot_forms.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "formats/artifact/kernel_abi.h"
#include "formats/artifact/shader_abi.h"
#include "runtime/ops/quantize.h"

namespace cortiq::runtime::vulkan {
namespace {

using namespace formats;

constexpr uint64_t kGroup = 32;

uint64_t lane_place(uint64_t i) {
  const uint64_t g = i / kGroup, j = i % kGroup / 4;
  return ((g / 32 * 8 + j) * 32 + g % 32) * 4 + i % 4;
}

/// A row of groups in 8 bits (shaders/common/q8.glsl).
struct EightBits {
  uint64_t groups, padded;
  explicit EightBits(uint64_t elements)
      : groups((elements + kGroup - 1) / kGroup),
        padded((elements + kShaderRowPadding - 1) / kShaderRowPadding * (kShaderRowPadding / kGroup)) {}
  uint64_t code_bytes(uint64_t g, uint64_t half) const { return ((g / 32 * 2 + half) * 32 + g % 32) * 16; }
  uint64_t scale_bytes(uint64_t g) const { return (padded * 8 + g) * 4; }
  uint64_t sum_bytes(uint64_t g) const { return (padded * 9 + g) * 4; }
};

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void store(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// The codes and scales stay what they are.
void eight_bits_to_q8a(const uint8_t* from, uint64_t elements, uint8_t* to) {
  const EightBits row(elements);
  const Q8ActLayout layout = q8_act_layout(elements);
  for (uint64_t g = 0; g < row.groups; ++g) {
    for (uint64_t half = 0; half < 2; ++half) {
      std::memcpy(to + g * kGroup + half * 16, from + row.code_bytes(g, half), 16);
      for (uint64_t i = elements; i < std::min((g + 1) * kGroup, row.groups * kGroup); ++i)
        to[i] = 0;
    }
    int32_t sums[2] = {0, 0};
    for (uint64_t i = 0; i < kGroup; ++i)
      sums[i / 16] += static_cast<int8_t>(to[g * kGroup + i]);
    const float scale = load<float>(from + row.scale_bytes(g));
    store(to + layout.scale + g * 4, scale);
    store(to + layout.msum + g * 4, scale * static_cast<float>(sums[0] + sums[1]));
    store(to + layout.sum32 + g * 4, sums[0] + sums[1]);
    store(to + layout.sum16 + g * 8, sums[0]);
    store(to + layout.sum16 + g * 8 + 4, sums[1]);
  }
}

void q8a_to_eight_bits(const uint8_t* from, uint64_t elements, uint8_t* to) {
  const EightBits row(elements);
  const Q8ActLayout layout = q8_act_layout(elements);
  for (uint64_t g = 0; g < row.groups; ++g) {
    for (uint64_t half = 0; half < 2; ++half)
      std::memcpy(to + row.code_bytes(g, half), from + g * kGroup + half * 16, 16);
    std::memcpy(to + row.scale_bytes(g), from + layout.scale + g * 4, 4);
    const auto low = load<int32_t>(from + layout.sum16 + g * 8), high = load<int32_t>(from + layout.sum16 + g * 8 + 4);
    store(to + row.sum_bytes(g), (static_cast<uint32_t>(low) & 0xffff) | static_cast<uint32_t>(high) << 16);
  }
}

float value_at(const artifact::GpuBuffer& buffer, const float* row, uint64_t elements, uint64_t i) {
  if (!buffer.eight_bits())
    return row[buffer.lanes() ? lane_place(i) : i];
  const EightBits form(elements);
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  const uint64_t g = i / kGroup;
  const auto code = static_cast<int8_t>(bytes[form.code_bytes(g, i % kGroup / 16) + i % 16]);
  return load<float>(bytes + form.scale_bytes(g)) * static_cast<float>(code);
}

} // namespace

void row_to_cpu(const artifact::GpuBuffer& buffer, const artifact::Buffer& slot, const float* from, uint8_t* to) {
  const uint64_t elements = slot.elements(), record = slot.bytes_per_token() / slot.records();
  for (uint64_t r = 0; r < slot.records(); ++r) {
    uint8_t* out = to + r * record;
    const float* row = from + r * elements;
    const bool eight_bits = slot.kind() == artifact::BufferKind::Q8Act;
    if (eight_bits && buffer.eight_bits()) {
      eight_bits_to_q8a(reinterpret_cast<const uint8_t*>(row), elements, out);
      continue;
    }
    if (eight_bits && !buffer.lanes()) {
      quantize_row(row, elements, out);
      continue;
    }
    std::vector<float> values;
    float* plain = reinterpret_cast<float*>(out);
    if (eight_bits) {
      values.resize((elements + 15) / 16 * 16);
      plain = values.data();
    }
    for (uint64_t i = 0; i < elements; ++i)
      plain[i] = value_at(buffer, row, elements, i);
    if (eight_bits)
      quantize_row(plain, elements, out);
    else
      std::memset(out + elements * sizeof(float), 0, f32_act_bytes(elements) - elements * sizeof(float));
  }
}

void row_from_cpu(const artifact::GpuBuffer& buffer, const artifact::Buffer& slot, const uint8_t* from, float* to) {
  const uint64_t elements = slot.elements(), record = slot.bytes_per_token() / slot.records();
  for (uint64_t r = 0; r < slot.records(); ++r) {
    const uint8_t* in = from + r * record;
    float* row = to + r * elements;
    const bool eight_bits = slot.kind() == artifact::BufferKind::Q8Act;
    const Q8ActLayout layout = q8_act_layout(elements);
    std::vector<uint8_t> quantized;
    if (buffer.eight_bits()) {
      if (!eight_bits) {
        quantized.resize(layout.bytes);
        quantize_row(reinterpret_cast<const float*>(in), elements, quantized.data());
        in = quantized.data();
      }
      q8a_to_eight_bits(in, elements, reinterpret_cast<uint8_t*>(row));
      continue;
    }
    for (uint64_t i = 0; i < elements; ++i)
      row[buffer.lanes() ? lane_place(i) : i] =
          eight_bits ? load<float>(in + layout.scale + i / kGroup * 4) * static_cast<float>(static_cast<int8_t>(in[i]))
                     : load<float>(in + i * 4);
  }
}

} // namespace cortiq::runtime::vulkan

#pragma once

// Plain form of the q8k quantization (formats/artifact/kernel_abi.h).

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::test {

struct Q8kRecord {
  std::vector<uint8_t> bytes; ///< as kernels read it
  std::vector<int8_t> codes;
  std::vector<float> scales; ///< a block
};

inline Q8kRecord q8k_record(std::vector<int8_t> codes, std::vector<float> scales, uint64_t block) {
  const formats::Q8kActLayout layout = formats::q8k_act_layout(codes.size(), block);
  std::vector<uint8_t> bytes(layout.bytes);
  std::memcpy(bytes.data(), codes.data(), codes.size());
  std::memcpy(bytes.data() + layout.scale, scales.data(), scales.size() * 4);
  for (size_t i = 0; i < codes.size(); i += 16) {
    int16_t sum = 0;
    for (size_t j = i; j < i + 16; ++j)
      sum += codes[j];
    std::memcpy(bytes.data() + layout.sums + i / 8, &sum, 2);
  }
  return {std::move(bytes), std::move(codes), std::move(scales)};
}

inline Q8kRecord quantize_q8k(const std::vector<float>& x, uint64_t block) {
  std::vector<int8_t> codes(x.size());
  std::vector<float> scales;
  for (size_t first = 0; first < x.size(); first += block) {
    float most = 0;
    for (size_t i = first; i < first + block; ++i)
      most = std::fmax(most, std::fabs(x[i]));
    scales.push_back(most / 127);
    for (size_t i = first; i < first + block; ++i)
      codes[i] = most > 0 ? int8_t(std::nearbyint(std::fmin(127.0f, std::fmax(-127.0f, x[i] * (127 / most))))) : 0;
  }
  return q8k_record(std::move(codes), std::move(scales), block);
}

} // namespace cortiq::test

#pragma once

#include <cstdint>
#include <string_view>

#include "formats/codec/codec.h"

namespace cortiq::formats {

/// What follows the codes of I2_S and I8_S: one f32 scale for the whole tensor and 28 bytes of padding.
inline constexpr uint64_t kTensorScaleBytes = 32;

/// The row of such a codec.
constexpr Codec tensor_scaled(CodecId id, std::string_view name, std::string_view gguf_name, int gguf_code,
                              uint32_t block, decltype(Codec::payload_bytes) payload_bytes,
                              decltype(Codec::decode_row) decode_row) {
  return {
      .id = id,
      .name = name,
      .cmf_name = "",
      .gguf_name = gguf_name,
      .cmf_code = -1,
      .gguf_code = gguf_code,
      .block = block,
      .block_bytes = 0,
      .flat = false,
      .needs_matrix = false,
      .form = DotForm::kAffineInt,
      .payload_bytes = payload_bytes,
      .decode_row = decode_row,
  };
}

} // namespace cortiq::formats

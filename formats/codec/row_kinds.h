#pragma once

// Rows of the codec table by kind: what the codecs of a kind have alike.

#include <cstdint>
#include <string_view>

#include "formats/codec/block_decode.h"
#include "formats/codec/codec.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {

/// What only GGUF files have; `block` weights share what there is of them.
constexpr Codec gguf_only(CodecId id, std::string_view name, std::string_view gguf_name, int gguf_code, uint32_t block,
                          DotForm form, decltype(Codec::payload_bytes) payload_bytes,
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
      .form = form,
      .payload_bytes = payload_bytes,
      .decode_row = decode_row,
  };
}

/// GGUF's contiguous blocks (block_decode.h).
template <uint32_t kWeights, uint32_t kBytes, auto kDecode>
constexpr Codec gguf_blocks(CodecId id, std::string_view name, std::string_view gguf_name, int gguf_code,
                            DotForm form) {
  Codec row = gguf_only(id, name, gguf_name, gguf_code, kWeights, form, contiguous_payload_bytes,
                        decode_blocks<kWeights, kBytes, kDecode>);
  row.block_bytes = kBytes;
  return row;
}

/// Numbers of kBytes bytes that both containers have.
template <uint32_t kBytes, auto kDecode>
constexpr Codec plain_numbers(CodecId id, std::string_view name, std::string_view gguf_name, int cmf_code,
                              int gguf_code) {
  Codec row = gguf_blocks<1, kBytes, kDecode>(id, name, gguf_name, gguf_code, DotForm::kFloat);
  row.cmf_name = name;
  row.cmf_code = cmf_code;
  return row;
}

/// A matrix of a CMF file, stored in planes; `block` weights share what there is of them.
constexpr Codec cmf_planes(CodecId id, std::string_view name, int cmf_code, uint32_t block, DotForm form,
                           decltype(Codec::payload_bytes) payload_bytes, decltype(Codec::decode_row) decode_row) {
  return {
      .id = id,
      .name = name,
      .cmf_name = name,
      .gguf_name = "",
      .cmf_code = cmf_code,
      .gguf_code = -1,
      .block = block,
      .block_bytes = 0,
      .flat = false,
      .needs_matrix = true,
      .form = form,
      .payload_bytes = payload_bytes,
      .decode_row = decode_row,
  };
}

/// CMF's tables of raw data, which are never weights.
constexpr Codec raw_data(CodecId id, std::string_view name, int cmf_code, uint32_t bytes) {
  Codec row = cmf_planes(id, name, cmf_code, 1, DotForm::kNone, contiguous_payload_bytes, nullptr);
  row.block_bytes = bytes;
  row.needs_matrix = false;
  return row;
}

/// CMF's matrices of contiguous blocks.
template <uint32_t kWeights, uint32_t kBytes, auto kDecode>
constexpr Codec cmf_blocks(CodecId id, std::string_view name, int cmf_code) {
  Codec row = cmf_planes(id, name, cmf_code, kWeights, DotForm::kAffineInt, contiguous_payload_bytes,
                         decode_blocks<kWeights, kBytes, kDecode>);
  row.block_bytes = kBytes;
  return row;
}

/// `row` where the payload says itself how long it is, which `validate` holds against the shape.
constexpr Codec of_variable_size(Codec row, decltype(Codec::validate) validate) {
  row.variable_size = true;
  row.validate = validate;
  return row;
}

/// `row` where the payload ends in an f16 scale a column.
constexpr Codec with_column_scales(Codec row) {
  row.column_scales = true;
  return row;
}

} // namespace cortiq::formats

#pragma once

// What every container reader hands out: an immutable, checked view of the tensors of one file.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec/codec.h"

namespace cortiq::formats {

/// One tensor of an opened container. Its bytes were checked to lie inside the file and to have the codec's size.
struct Tensor {
  std::string name;             ///< the container's own name
  const Codec* codec = nullptr; ///< null for a type that the container knows and the codec table lacks
  std::vector<uint64_t> shape;  ///< outermost dimension first, so that [out, in] is a linear layer; empty = scalar
  uint32_t file = 0;            ///< index of the part (shard, split) that holds it
  uint64_t offset = 0;          ///< from the start of that file
  std::span<const uint8_t> data;
  std::string_view type_name; ///< the container's word for the type, also where `codec` is null: "q4tp", "Q4_K"
  int type_code = -1;         ///< its number in that container

  /// Matrix view: the last dimension, and the product of all before it (1 for vectors and scalars).
  uint64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t rows() const {
    uint64_t n = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i)
      n *= shape[i];
    return n;
  }
};

/// The codec of `tensor` if its values can be decoded to floats; else a refusal that names the tensor, its type and
/// number.
StatusOr<const Codec*> weight_codec(const Tensor& tensor);

/// All values, row-major, by the reference decode. Fails as weight_codec() does.
StatusOr<std::vector<float>> decode_tensor(const Tensor& tensor);

} // namespace cortiq::formats

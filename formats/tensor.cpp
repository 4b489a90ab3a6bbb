#include "formats/tensor.h"

#include "formats/quote.h"

namespace cortiq::formats {

namespace {

/// More than the largest matrix of a real model by a factor of two.
constexpr uint64_t kMostLowRankWeights = uint64_t{1} << 32;

} // namespace

StatusOr<const Codec*> weight_codec(const Tensor& tensor) {
  const std::string type = std::string(tensor.type_name) + " (type " + std::to_string(tensor.type_code) + ")";
  if (tensor.codec == nullptr)
    return unsupported("tensor " + quote(tensor.name) + " is stored as " + type + ", which this version cannot decode");
  if (tensor.codec->decode_row == nullptr)
    return unsupported("tensor " + quote(tensor.name) + " holds raw " + type + " data, not weights");
  return tensor.codec;
}

StatusOr<std::vector<float>> decode_tensor(const Tensor& tensor) {
  CORTIQ_ASSIGN_OR_RETURN(const Codec* codec, weight_codec(tensor));
  // The readers hold payload size against shape, which bounds the result by a small multiple of the file for all codecs
  // but blr: there a few bytes a row and a column may stand for a matrix of any size.
  const uint64_t rows = tensor.rows();
  const uint64_t cols = tensor.cols();
  if (codec->id == CodecId::kBLR && rows > kMostLowRankWeights / cols)
    return unsupported("tensor " + quote(tensor.name) + " is a low-rank product of " + shape_text(tensor.shape) +
                       " weights, too many to be decoded at once");
  std::vector<float> out(rows * cols);
  for (uint64_t r = 0; r < rows; ++r)
    codec->decode_row(tensor.data.data(), rows, cols, r, out.data() + r * cols);
  return out;
}

} // namespace cortiq::formats

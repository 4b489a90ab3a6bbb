#include "formats/tensor.h"

#include "formats/quote.h"

namespace cortiq::formats {

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
  // The readers hold payload size against shape, and no codec spends less than half a bit a weight, so this is bounded
  // by a small multiple of the file.
  const uint64_t rows = tensor.rows();
  const uint64_t cols = tensor.cols();
  std::vector<float> out(rows * cols);
  for (uint64_t r = 0; r < rows; ++r)
    codec->decode_row(tensor.data.data(), rows, cols, r, out.data() + r * cols);
  return out;
}

} // namespace cortiq::formats

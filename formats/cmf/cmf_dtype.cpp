#include "formats/cmf/cmf_dtype.h"

#include <algorithm>
#include <array>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

/// The reserved codes: a directory may carry them, their payload has no definition.
struct ReservedDtype {
  int code;
  std::string_view name;
};

constexpr std::array kReserved = {ReservedDtype{5, "mix8_4"}, ReservedDtype{7, "q4_col"}};

Status check_codec(const Tensor& tensor) {
  const Codec& codec = *tensor.codec;
  if (codec.needs_matrix && tensor.shape.size() != 2)
    return invalid("has the shape " + shape_text(tensor.shape) + ", but " + std::string(tensor.type_name) +
                   " needs two dimensions");
  return check_payload(codec, tensor.data, tensor.rows(), tensor.cols(), /*strict=*/true);
}

Status check_row(Tensor& tensor) {
  if (const Codec* codec = find_cmf_codec(tensor.type_code)) {
    tensor.codec = codec;
    tensor.type_name = codec->cmf_name;
    return check_codec(tensor);
  }
  const auto* row = std::find_if(kReserved.begin(), kReserved.end(),
                                 [&](const ReservedDtype& r) { return r.code == tensor.type_code; });
  if (row == kReserved.end())
    return invalid("has the unknown dtype id " + std::to_string(tensor.type_code));
  tensor.type_name = row->name;
  return {};
}

} // namespace

Status resolve_cmf_dtype(Tensor& tensor) {
  return check_row(tensor).with_prefix("tensor " + quote(tensor.name));
}

} // namespace cortiq::formats

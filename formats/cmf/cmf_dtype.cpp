#include "formats/cmf/cmf_dtype.h"

#include <algorithm>
#include <array>

#include "formats/checked_math.h"
#include "formats/cmf/cmf_payload.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

struct DtypeRow {
  int code;
  std::string_view name;
  /// Shape and payload rules; null for the two reserved codes, whose payload has no definition.
  Status (*check)(const Tensor&);
};

constexpr std::array kRows = {
    DtypeRow{5, "mix8_4", nullptr},         DtypeRow{7, "q4_col", nullptr},     DtypeRow{8, "vbit", check_vbit},
    DtypeRow{10, "vbit_ro", check_vbit_ro}, DtypeRow{12, "q1", check_q1},       DtypeRow{13, "q1s", check_q1s},
    DtypeRow{14, "q1t", check_q1t},         DtypeRow{16, "q2tp", check_q2tp},   DtypeRow{19, "blr", check_blr},
    DtypeRow{20, "q1g", check_q1g},         DtypeRow{21, "mxfp4", check_mxfp4},
};

Status check_codec(const Tensor& tensor) {
  const Codec& codec = *tensor.codec;
  if (codec.needs_matrix && tensor.shape.size() != 2)
    return invalid("has the shape " + shape_text(tensor.shape) + ", but " + std::string(tensor.type_name) +
                   " needs two dimensions");
  StatusOr<uint64_t> size = codec.payload_bytes(codec, tensor.rows(), tensor.cols());
  if (!size.ok())
    return size.status();
  return expect_payload_size(tensor, *size);
}

Status check_row(Tensor& tensor) {
  if (const Codec* codec = find_cmf_codec(tensor.type_code)) {
    tensor.codec = codec;
    tensor.type_name = codec->cmf_name;
    return check_codec(tensor);
  }
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const DtypeRow& r) { return r.code == tensor.type_code; });
  if (row == kRows.end())
    return invalid("has the unknown dtype id " + std::to_string(tensor.type_code));
  tensor.type_name = row->name;
  return row->check == nullptr ? Status() : row->check(tensor);
}

} // namespace

Status resolve_cmf_dtype(Tensor& tensor) {
  return check_row(tensor).with_prefix("tensor " + quote(tensor.name));
}

} // namespace cortiq::formats

#include "formats/cmf/cmf_dtype.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

/// The reserved codes: a directory may carry them, their payload has no definition.
struct ReservedDtype {
  int code;
  std::string_view name;
};

constexpr std::array kReserved = {ReservedDtype{5, "mix8_4"}, ReservedDtype{7, "q4_col"}};

std::string_view bare_name(std::string_view name) {
  constexpr std::string_view kPrefix = "language_model.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

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

Status mark_affine_tensors(std::span<Tensor> tensors, const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, std::vector<Tensor*>> by_bare_name;
  for (Tensor& tensor : tensors)
    by_bare_name[bare_name(tensor.name)].push_back(&tensor);
  for (const std::string& name : names) {
    const auto found = by_bare_name.find(bare_name(name));
    const size_t count = found == by_bare_name.end() ? 0 : found->second.size();
    if (count != 1)
      return invalid("arch.prism_hadamard.affine lists " + quote(name) + ", which is the name of " +
                     std::to_string(count) + " tensors instead of one");
    Tensor& tensor = *found->second[0];
    if (tensor.codec == nullptr || tensor.codec->id != CodecId::kQ2TP)
      return invalid("arch.prism_hadamard.affine lists " + quote(name) + ", which is " + std::string(tensor.type_name) +
                     " instead of q2tp or is listed twice");
    tensor.codec = &codec_info(CodecId::kQ2TPAffine);
    tensor.type_name = tensor.codec->cmf_name;
  }
  return {};
}

Status resolve_cmf_dtype(Tensor& tensor) {
  return check_row(tensor).with_prefix("tensor " + quote(tensor.name));
}

} // namespace cortiq::formats

#pragma once

// The dtype codes of a CMF directory. The codec table describes them all but the two reserved ones, which are listed
// and cannot be decoded.

#include <span>
#include <string>
#include <vector>

#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// Fills in codec and type_name of `tensor` from its type_code, then checks shape and payload (specification 2): a size
/// that does not follow from the shape, and codecs that describe themselves in their payload. Messages name the tensor.
Status resolve_cmf_dtype(Tensor& tensor);

/// Gives the q2tp tensors that a Prism record lists (specification 3.12) the affine reading of their payload. Every
/// name has to belong to exactly one q2tp tensor, with or without the prefix "language_model.".
Status mark_affine_tensors(std::span<Tensor> tensors, const std::vector<std::string>& names);

} // namespace cortiq::formats

#pragma once

// The dtype codes of a CMF directory. The codec table describes them all but the two reserved ones, which are listed
// and cannot be decoded.

#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// Fills in codec and type_name of `tensor` from its type_code, then checks shape and payload (specification 2): a size
/// that does not follow from the shape, and codecs that describe themselves in their payload. Messages name the tensor.
Status resolve_cmf_dtype(Tensor& tensor);

} // namespace cortiq::formats

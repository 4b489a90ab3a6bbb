#pragma once

// The dtype codes of a CMF directory. Codes with a row in the codec table are described there; the rest stand in a
// table of this file's source: they are listed and their payload is checked, but they cannot be decoded yet. A codec
// that moves into the codec table gives up its row here.

#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// Fills in codec and type_name of `tensor` from its type_code, then checks shape and payload (specification 2): a size
/// that does not follow from the shape, and codecs that describe themselves in their payload. Messages name the tensor.
Status resolve_cmf_dtype(Tensor& tensor);

} // namespace cortiq::formats

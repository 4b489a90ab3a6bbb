#pragma once

// Shape and payload rules of the CMF dtypes that the codec table does not describe (specification 2.6 to 2.16).
// Messages continue a sentence that starts with the tensor's name.

#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

/// Refuses a payload of another size than `expected`.
Status expect_payload_size(const Tensor& tensor, uint64_t expected);

Status check_vbit(const Tensor& tensor);
Status check_vbit_ro(const Tensor& tensor);
Status check_q1(const Tensor& tensor);
Status check_q1s(const Tensor& tensor);
Status check_q1t(const Tensor& tensor);
Status check_q2tp(const Tensor& tensor);
Status check_blr(const Tensor& tensor);
Status check_q1g(const Tensor& tensor);
Status check_mxfp4(const Tensor& tensor);

} // namespace cortiq::formats

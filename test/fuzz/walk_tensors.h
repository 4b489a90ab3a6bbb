#pragma once

// What every container's target does with the tensors that a reader handed out.

#include <vector>

#include "formats/tensor.h"

namespace cortiq::fuzz {

/// Reads every payload whole and decodes the first, middle and last row of every tensor that has a decode.
void walk_tensors(const std::vector<formats::Tensor>& tensors);

} // namespace cortiq::fuzz

#pragma once

// What was written, held against what it was made of.

#include <functional>
#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-convert/convert.h"
#include "tools/cortiq-convert/plan.h"

namespace cortiq::convert {

/// Opens `path`, recomputes its hashes and decodes every tensor: lossless targets have to give the source's bits, all
/// others finite values. A failure is a bug of ours, or a disk that did not keep what was written.
StatusOr<std::vector<ConvertedTensor>> verify_output(const std::string& path, const std::vector<Target>& targets,
                                                     unsigned threads, const std::function<void(double)>& progress);

} // namespace cortiq::convert

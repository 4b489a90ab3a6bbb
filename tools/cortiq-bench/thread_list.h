#pragma once

// "--threads 16,8,4,1".

#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::bench {

/// Numbers from 1 to 1024 with commas between, given with `option`.
StatusOr<std::vector<unsigned>> parse_counts(const char* option, const std::string& text);
/// The same for --threads; empty, or 0: the machine's default number alone.
StatusOr<std::vector<unsigned>> parse_threads(const std::string& text);

} // namespace cortiq::bench

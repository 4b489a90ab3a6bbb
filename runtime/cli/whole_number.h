#pragma once

// A check for options that take a count: what the option parser itself lets pass, "-1" or more digits than fit, is
// refused here.

#include <cstdint>
#include <functional>
#include <string>

namespace cortiq::runtime::cli {

/// The check of one option: why its text is no whole number from `least` to `most`, empty where it is one.
std::function<std::string(const std::string&)> whole_number(uint64_t least, uint64_t most = UINT64_MAX);

} // namespace cortiq::runtime::cli

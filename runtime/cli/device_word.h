#pragma once

// The word behind --device.

#include <cstdint>
#include <string>
#include <vector>

namespace cortiq::runtime::cli {

/// The numbers of "0,1"; empty when it is something else.
std::vector<uint32_t> parse_devices(const std::string& word);
/// Why `word` is neither numbers nor auto, none or list; empty when it is.
std::string check_device(const std::string& word);

} // namespace cortiq::runtime::cli

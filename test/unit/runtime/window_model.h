#pragma once

// A model of sliding windows, as an artifact.

#include <cstdint>
#include <string>

#include "formats/status.h"

namespace cortiq::test {

inline constexpr uint32_t kWindowVocab = 31, kWindow = 70, kWindowBatch = 24;
inline constexpr uint64_t kWindowContext = 600;

/// Two layers of windowed attention, the second with a window a key/value head, over an embedding.
Status write_window_model(const std::string& path, bool ring, uint64_t max_context = kWindowContext,
                          uint32_t window = kWindow);

} // namespace cortiq::test

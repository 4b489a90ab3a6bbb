#pragma once

// The grids of the codebook codecs (GGUF specification sections 7 and 8): an entry gives the magnitudes, in IQ1 the
// levels, of eight or four neighbouring weights, one a byte, the first weight in the lowest. Kernels may bring them
// into any other form.

#include <cstdint>
#include <span>

namespace cortiq::formats {

std::span<const uint64_t> iq2_xxs_grid(); ///< 256 entries of 8, 25, 43
std::span<const uint64_t> iq2_xs_grid();  ///< 512 entries of 8, 25, 43
std::span<const uint64_t> iq2_s_grid();   ///< 1024 entries of 8, 25, 43
std::span<const uint32_t> iq3_xxs_grid(); ///< 256 entries of 4, 12, 20, 28, 36, 44, 52, 62
std::span<const uint32_t> iq3_s_grid();   ///< 512 entries of 1, 3, ... 15
std::span<const uint64_t> iq1_grid();     ///< 2048 entries of int8 -1, 0, 1

} // namespace cortiq::formats

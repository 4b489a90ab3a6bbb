#pragma once

// The tensor directory of a CMF file (specification 1.6).

#include <cstdint>
#include <span>
#include <vector>

#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::formats {

inline constexpr uint64_t kCmfDirectoryHead = 16;
inline constexpr uint64_t kCmfRecordBytes = 56;
inline constexpr size_t kCmfMaxDimensions = 6;

struct CmfDirectory {
  std::vector<Tensor> tensors; ///< `file` is left at 0
  std::vector<uint64_t> hashes;
};

/// Reads and checks a directory. `data` is the data section, which starts `data_offset` bytes into the file. Names are
/// unique and payloads do not overlap.
StatusOr<CmfDirectory> parse_cmf_directory(std::span<const uint8_t> directory, std::span<const uint8_t> data,
                                           uint64_t data_offset);

} // namespace cortiq::formats

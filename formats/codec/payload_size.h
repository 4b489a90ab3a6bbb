#pragma once

// Payload sizes that several codecs share. All of them fail, rather than wrap, on sizes beyond 64 bits.

#include <cstdint>
#include <optional>

#include "formats/codec/codec.h"
#include "formats/status.h"

namespace cortiq::formats {

/// Contiguous blocks of `codec.block` weights: rows * cols / block * block_bytes. A row must be whole blocks. Plain
/// numbers (block 1) may be empty tensors, blocks may not.
StatusOr<uint64_t> contiguous_payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols);

/// Fails unless rows x cols holds at least one row of whole blocks.
Status check_block_shape(const Codec& codec, uint64_t rows, uint64_t cols);

/// `size`, or the failure that says that rows x cols of this codec is beyond 64 bits.
StatusOr<uint64_t> size_or_overflow(const Codec& codec, uint64_t rows, uint64_t cols, std::optional<uint64_t> size);

/// Fails unless a payload of `size` bytes is as long as, or no shorter than, a rows x cols tensor of this codec has to
/// be. Messages continue a sentence that starts with the tensor's name.
Status expect_size(const Codec& codec, uint64_t size, uint64_t expected, uint64_t rows, uint64_t cols);
Status expect_at_least(const Codec& codec, uint64_t size, uint64_t least, uint64_t rows, uint64_t cols);

} // namespace cortiq::formats

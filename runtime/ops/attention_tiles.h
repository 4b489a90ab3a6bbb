#pragma once

// The inner part of attention on tiles of bf16 (AMX), for the tokens of prompts that are multiplied in 16 bits.

#include <cstdint>

#include "runtime/ops/attention_rows.h"

namespace cortiq::runtime {

/// Whether this processor has such tiles and the system lets the process use them.
bool attention_tiles_usable();

/// Scratch that attend_on_tiles() needs, 64-byte aligned.
uint64_t attention_tiles_scratch_bytes(uint64_t k_dim, uint64_t v_stride);

/// Sums the positions of one chunk for rows that have summed nothing and see no others: sets their `acc`, `max` and
/// `sum`. Queries, keys, values and the weights between them are bf16, sums f32. A row's result depends on what it sees
/// only.
void attend_on_tiles(const AttentionTask& task, uint8_t* scratch);

} // namespace cortiq::runtime

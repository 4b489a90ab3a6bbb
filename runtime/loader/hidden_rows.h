#pragma once

// Where a program holds the model's last hidden state, for embeddings.

#include <cstdint>
#include <span>

#include "formats/artifact/artifact_generated.h"
#include "runtime/executor/program.h"
#include "runtime/loader/resolver.h"

namespace cortiq::runtime {

/// The model's last hidden state, normed, as the head reads it.
struct HiddenRows {
  SlotRef slot;           ///< one row a token of the head; absent where the program has none
  bool q8 = false;        ///< as activations of the fast arm, else f32
  uint32_t end_stage = 0; ///< behind the stage that makes them
};

/// What the head's product reads, traced back over quantization and transforms to the norm that makes it. Absent where
/// the program has no such norm. `program` was resolved into `resolved`.
HiddenRows find_hidden_rows(const artifact::Program& program, const Resolver& resolver,
                            const ResolvedProgram& resolved);

/// Adds the row of a token that a step left in `arena` to `sum`, which has as many elements.
void add_hidden_row(const HiddenRows& hidden, uint8_t* arena, uint64_t token, std::span<double> sum);

} // namespace cortiq::runtime

#pragma once

// The core of the `bf16` arm on tile registers (bf16_core.cpp says how).

#include "codegen/kernels/sums_core.h"

namespace cortiq::codegen {

class Bf16Core final : public SumsCore {
public:
  Bf16Core(CoreContext& c, Value args, Value scratch);

  void begin_call() override;
  void end_call() override;
  void run(Value weights, int64_t group_bytes) override;

private:
  /// A part of K whose panels stay in the second-level cache: its number of the first iteration of the decoder's loop,
  /// null for 0, and its weights.
  struct Chunk {
    Value iteration;
    uint64_t weights;
    bool first; ///< sums begin with it
  };
  void run_chunk(const Chunk& chunk, Value weights, int64_t group_bytes);
  void decode(const Chunk& chunk, Value weights, int64_t group_bytes);
  void decode_record(const RecordPlace& place, Value panel);
  void multiply(const Chunk& chunk);
  /// Where a step's operands stand, and those of the next block of tokens, for which memory is asked beside it.
  struct Place {
    Value act, panel, ahead;
  };
  void multiply_block(bool first, uint64_t steps, Place at, Value sums);
  void multiply_steps(uint64_t steps, bool more, const Place& at);
  void ask(const Place& at, unsigned step, unsigned part);
  void load_values(Value act, unsigned step, unsigned tile);
  void load_weights(Value panel, unsigned step, unsigned rows);

  const formats::Bf16ActLayout act_;
  const int64_t stride_;       ///< of activation records
  const uint64_t iteration_;   ///< weights of one of the decoder's loop
  const uint64_t chunk_;       ///< weights of a chunk
  const int64_t panel_stride_; ///< of a row group
  Value scratch_, panel_;      ///< the scratch, and where panels stand in it
};

} // namespace cortiq::codegen

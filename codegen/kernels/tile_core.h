#pragma once

// The core of the `fast` arm on tile registers (tile_core.cpp says how). It takes any number of tokens, so sums stay in
// memory and it has an epilogue of its own.

#include "codegen/kernels/core.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

class TileCore {
public:
  /// `c.tokens` holds token 0; `args` is the argument block.
  TileCore(CoreContext& c, Value args, Value scratch);

  /// What stands in front of and behind all row groups of a call.
  void begin_call();
  void end_call();

  /// Where a row group's results go; `residual` and `bias` are null where the kernel has none.
  struct Output {
    Value out, residual, bias;
  };
  /// One row group for all tokens: sums and epilogue.
  void run(Address group, const Output& output);

private:
  /// Where a run of groups of 32 weights stands: the panel, and token 0's codes, scales and sums of half groups.
  struct Place {
    Value panel, codes, scales, halves;
  };
  /// A span of a run: group of 32 counted from the run's start, and number in the group.
  struct Span {
    unsigned group, number;
  };

  void decode(Address group);
  void decode_record(const RecordPlace& place);
  void clear_sums();
  void multiply();
  void multiply_chunk(const Place& at, uint64_t groups, unsigned last_spans);
  std::vector<Value> multiply_spans(const Place& at, const std::vector<Span>& spans, std::vector<Value> acc);
  void issue(const Place& at, Span span, unsigned slot);
  void add_products(const Place& at, Span span, unsigned slot, std::vector<Value>& acc);
  void epilogue(Address group, const Output& output);
  Place advance(const Place& at, int64_t groups);

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const formats::Q8ActLayout act_;
  const int64_t stride_;      ///< of activation records
  const unsigned span_;       ///< weights whose products are summed as integers
  const unsigned spans_;      ///< of those in a group of 32
  const int64_t panel_bytes_; ///< of a group of 32 in the panel
  Value tokens_, out_stride_, residual_stride_;
  Value products_, sums_, panel_; ///< parts of the scratch
};

} // namespace cortiq::codegen

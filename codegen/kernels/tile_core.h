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

  /// What stands in front of and behind the work of a call.
  void begin_call();
  void end_call();

  /// Decodes the call's row groups, of which the first stands at `weights`, the next `group_bytes` further.
  void decode(Value weights, int64_t group_bytes);
  /// Sums of all row groups and tokens.
  void multiply();

  /// Where a row group's results go; `residual` and `bias` are null where the kernel has none.
  struct Output {
    Value out, residual, bias;
  };
  /// Where the first row group's sums stand, and the next one's behind those at `sums`.
  Value first_sums() const { return sums_; }
  Value next_sums(Value sums) { return e_.offset(sums, sums_bytes_); }
  void epilogue(Address group, Value sums, const Output& output);

private:
  /// Where a run of groups of 32 weights stands: the panel of the first of two row groups, and token 0's codes, scales
  /// and sums of half groups.
  struct Place {
    Value panel, codes, scales, halves;
  };
  /// A span of a run: group of 32 counted from the run's start, and number in the group.
  struct Span {
    unsigned group, number;
  };
  /// One of a span's four products: which of two tiles of tokens, and which of two row groups.
  struct Cell {
    unsigned tile, rows;
  };

  void decode_record(const RecordPlace& place, Value panel);
  void clear_scales(Value panel);
  void clear_sums();
  void multiply_chunk(const Place& at, uint64_t groups, unsigned last_spans);
  void multiply_spans(const Place& at, const std::vector<Span>& spans, Value sums);
  void load_codes(const Place& at, Span span, unsigned tile);
  void load_levels(const Place& at, Span span, unsigned rows);
  int64_t slot(Cell cell, unsigned number) const;
  void store_products(unsigned product, Cell cell, unsigned number);
  std::vector<Value> add_products(const Place& at, Span span, Cell cell, unsigned number, std::vector<Value> acc);
  Place advance(const Place& at, int64_t groups);

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const formats::Q8ActLayout act_;
  const int64_t stride_;                    ///< of activation records
  const unsigned span_;                     ///< weights whose products are summed as integers
  const unsigned spans_;                    ///< of those in a group of 32
  const unsigned at_once_;                  ///< whose products are stored before they are added
  const int64_t panel_bytes_;               ///< of a group of 32 in a panel
  const int64_t panel_stride_, sums_bytes_; ///< of a row group
  Value groups_, tokens_, out_stride_, residual_stride_;
  Value scratch_, products_, sums_, panel_; ///< the scratch and parts of it
};

} // namespace cortiq::codegen

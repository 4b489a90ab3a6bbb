#pragma once

// What the cores of the `fast` arm on matrix instructions share (tile_core.h, pair_core.h): a call's row groups are
// decoded once for all its tokens, K is walked in chunks, and sums stay in memory.
//
// Data, in scratch: behind what a core keeps for itself
//   f32 sums[row groups][tokens][16]
//   panels[row groups]: of each group of 32 weights the int8 levels, zero point taken off, in the core's order, then
//                       scales and minima of its spans where the codec has them

#include <string_view>

#include "codegen/kernels/core.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

class ChunkCore {
public:
  virtual ~ChunkCore() = default;

  /// What stands in front of and behind the work of a call.
  virtual void begin_call() {}
  virtual void end_call() {}

  /// Decodes the call's row groups, of which the first stands at `weights`, the next `group_bytes` further.
  virtual void decode(Value weights, int64_t group_bytes);
  /// Sums of all row groups and tokens.
  void multiply();

  /// Where a row group's results go; `residual` and `bias` are null where the kernel has none.
  struct Output {
    Value out, residual, bias;
  };
  /// Where the first row group's sums stand, and the next one's behind those at `sums`.
  Value first_sums() const { return sums_; }
  Value next_sums(Value sums) { return e_.offset(sums, sums_bytes_); }
  virtual void epilogue(Address group, Value sums, const Output& output);

protected:
  static constexpr unsigned kGroup = 32;      ///< activations that share a scale
  static constexpr int64_t kLevelBytes = 512; ///< of a group in the panel
  static constexpr int64_t kRowBytes = 64;    ///< of a number of 16 rows

  /// How a core cuts its work: groups of 32 that a chunk has at most and a multiple of which it has, and the tokens and
  /// row groups of a block.
  struct Cut {
    uint64_t chunk_groups, at_once;
    int64_t tokens, row_groups;
  };
  /// `c.tokens` holds token 0; `args` is the argument block; a span's scales take `scale_bytes` of a panel.
  ChunkCore(CoreContext& c, Value args, Value scratch, int64_t scale_bytes);

  /// Where a run of groups of 32 weights stands: the panel of the first row group, and token 0's codes, scales and sums
  /// of half groups.
  struct Place {
    Value panel, codes, scales, halves;
  };
  Place advance(const Place& at, int64_t groups);

  virtual Cut cut() const = 0;
  /// Four weights' levels of the rows of vector v, number `step` of the group that is decoded to `group`.
  virtual void put_levels(Address group, unsigned v, unsigned step, Value levels) = 0;
  /// Scale or minimum of the group's span.
  virtual void put_scale(Address group, unsigned v, unsigned span, Value scale) = 0;
  virtual void put_minimum(Address group, unsigned v, unsigned span, Value minimum) = 0;
  /// Adds the products of `groups` groups, the last of which has `last_spans` spans, to the sums of all tokens and
  /// rows.
  virtual void multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) = 0;

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const formats::Q8ActLayout act_;
  const int64_t stride_;                    ///< of activation records
  const unsigned span_;                     ///< weights whose products are summed as integers
  const unsigned spans_;                    ///< of those in a group of 32
  const int64_t panel_bytes_;               ///< of a group of 32 in a panel
  const int64_t panel_stride_, sums_bytes_; ///< of a row group
  Value groups_, tokens_, out_stride_, residual_stride_;
  Value scratch_, sums_, panel_; ///< the scratch and parts of it

private:
  void decode_record(const RecordPlace& place, Value panel);
  void clear_sums();
};

} // namespace cortiq::codegen

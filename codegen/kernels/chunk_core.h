#pragma once

// What the cores of the `fast` arm on matrix instructions share (tile_core.h, pair_core.h): a call's row groups are
// decoded once for all its tokens, K is walked in chunks, and sums stay in memory.
//
// Data, in scratch: behind what a core keeps for itself the sums (sums_core.h), then
//   panels[row groups]: of each group of 32 weights the int8 levels, zero point taken off, in the core's order, then
//                       scales and minima of its spans where the codec has them

#include <string_view>

#include "codegen/kernels/sums_core.h"

namespace cortiq::codegen {

class ChunkCore : public SumsCore {
public:
  void run(Value weights, int64_t group_bytes) override;

protected:
  static constexpr unsigned kGroup = 32;      ///< activations that share a scale
  static constexpr int64_t kLevelBytes = 512; ///< of a group in the panel

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
  /// Decodes the call's row groups.
  virtual void decode(Value weights, int64_t group_bytes);
  /// Four weights' levels of the rows of vector v, number `step` of the group that is decoded to `group`.
  virtual void put_levels(Address group, unsigned v, unsigned step, Value levels) = 0;
  /// Scale or minimum of the group's span.
  virtual void put_scale(Address group, unsigned v, unsigned span, Value scale) = 0;
  virtual void put_minimum(Address group, unsigned v, unsigned span, Value minimum) = 0;
  /// Adds the products of `groups` groups, the last of which has `last_spans` spans, to the sums of all tokens and
  /// rows.
  virtual void multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) = 0;

  const formats::Q8ActLayout act_;
  const int64_t stride_;       ///< of activation records
  const unsigned span_;        ///< weights whose products are summed as integers
  const unsigned spans_;       ///< of those in a group of 32
  const int64_t panel_bytes_;  ///< of a group of 32 in a panel
  const int64_t panel_stride_; ///< of a row group
  Value scratch_, panel_;      ///< the scratch, and where panels stand in it

private:
  /// Sums of all row groups and tokens.
  void multiply();
  void decode_record(const RecordPlace& place, Value panel);
  void clear_sums();
};

} // namespace cortiq::codegen

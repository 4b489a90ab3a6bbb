#pragma once

// In which order the rows of a result lie in its source. Each function names what the source has; the result always has
// the order of the CMF specification (3.1, 3.6).

#include <cstdint>
#include <functional>

namespace cortiq::convert {

/// The source's index for an index of the result.
using IndexOrder = std::function<uint64_t(uint64_t)>;

/// Columns move in stretches of `run`: stretch i of the result is stretch order(i) of the source.
struct ColumnOrder {
  uint64_t run = 0; ///< 0: the columns stay
  IndexOrder order;
};

/// Heads of `head` rows whose rotated pairs are neighbours (2i, 2i + 1) instead of halves (i, i + head / 2).
IndexOrder from_neighbours(uint64_t head);

/// Heads of latent attention with `nope` plain rows, then `rope` rotated ones in neighbours; the result has the rotated
/// ones first, in halves.
IndexOrder from_nope_first(uint64_t nope, uint64_t rope);

/// `plain` rows, then `rope` rotated ones in neighbours; only the latter move.
IndexOrder from_neighbours_after(uint64_t plain, uint64_t rope);

/// Value heads of `size` rows each, stored as [turn][group] instead of [group][turn]; `groups` key heads with `turns`
/// value heads each.
IndexOrder from_tiled_heads(uint64_t groups, uint64_t turns, uint64_t size);

/// The first `kept` rows stay, `after` says the order of those behind them.
IndexOrder after_rows(uint64_t kept, IndexOrder after);

/// Part of groups of `stride` rows: from each `take` rows, `skip` rows into the group.
IndexOrder from_groups(uint64_t stride, uint64_t skip, uint64_t take);

} // namespace cortiq::convert

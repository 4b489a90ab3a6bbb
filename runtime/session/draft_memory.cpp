#include "runtime/session/draft_memory.h"

#include <algorithm>

namespace cortiq::runtime {

void DraftMemory::ran(uint64_t position, std::span<const uint32_t> tokens) {
  row_position_ = position;
  rows_.assign(tokens.begin(), tokens.end());
}

void DraftMemory::rewind(uint64_t position) {
  if (position < row_position_ + rows_.size())
    rows_.resize(position > row_position_ ? position - row_position_ : 0);
  // The entry of the last token that is left depends on one that is gone.
  end_ = std::min(end_, position == 0 ? 0 : position - 1);
  if (end_ <= first_)
    first_ = end_ = 0;
}

std::optional<DraftRun> DraftMemory::run(uint64_t position, uint32_t next) {
  if (rows_.empty() || row_position_ + rows_.size() != position)
    return std::nullopt;
  if (first_ == end_ || end_ < row_position_)
    first_ = end_ = row_position_;
  const uint64_t first = end_ - row_position_;
  if (first >= rows_.size())
    return std::nullopt;
  follow_.assign(rows_.begin() + 1, rows_.end());
  follow_.push_back(next);
  return DraftRun{first, rows_.size() - first, row_position_ - first_, follow_};
}

void DraftMemory::covered() {
  end_ = row_position_ + rows_.size();
  rows_.clear();
}

} // namespace cortiq::runtime

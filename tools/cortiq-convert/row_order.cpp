#include "tools/cortiq-convert/row_order.h"

#include <utility>

namespace cortiq::convert {
namespace {

/// The place of row `i` of `size` halves among neighbours.
uint64_t neighbour(uint64_t i, uint64_t size) {
  const uint64_t half = size / 2;
  return 2 * (i % half) + i / half;
}

} // namespace

IndexOrder from_neighbours(uint64_t head) {
  return [=](uint64_t i) { return i - i % head + neighbour(i % head, head); };
}

IndexOrder from_nope_first(uint64_t nope, uint64_t rope) {
  return [=](uint64_t i) {
    const uint64_t head = nope + rope, within = i % head;
    return i - within + (within < rope ? nope + neighbour(within, rope) : within - rope);
  };
}

IndexOrder from_neighbours_after(uint64_t plain, uint64_t rope) {
  return [=](uint64_t i) { return i < plain ? i : plain + neighbour(i - plain, rope); };
}

IndexOrder from_tiled_heads(uint64_t groups, uint64_t turns, uint64_t size) {
  return [=](uint64_t i) {
    const uint64_t head = i / size, group = head / turns, turn = head % turns;
    return (turn * groups + group) * size + i % size;
  };
}

IndexOrder after_rows(uint64_t kept, IndexOrder after) {
  return [kept, after = std::move(after)](uint64_t i) { return i < kept ? i : kept + after(i - kept); };
}

IndexOrder from_groups(uint64_t stride, uint64_t skip, uint64_t take) {
  return [=](uint64_t i) { return i / take * stride + skip + i % take; };
}

} // namespace cortiq::convert

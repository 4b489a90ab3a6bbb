#include "formats/encode/row_planes.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace cortiq::formats {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{8} << 20;

} // namespace

void for_each_row(uint64_t first, uint64_t count, unsigned threads, const std::function<void(uint64_t row)>& work) {
  const uint64_t workers = std::min<uint64_t>(std::max(threads, 1u), count);
  if (workers <= 1) {
    for (uint64_t row = first; row < first + count; ++row)
      work(row);
    return;
  }
  std::atomic<uint64_t> next = first;
  const auto run = [&] {
    for (uint64_t row; (row = next.fetch_add(1)) < first + count;)
      work(row);
  };
  std::vector<std::jthread> others;
  for (uint64_t i = 1; i < workers; ++i)
    others.emplace_back(run);
  run();
}

Status write_planes(PayloadSink& sink, uint64_t rows, std::span<const Plane> planes, unsigned threads,
                    const RowFiller& fill) {
  uint64_t row_bytes = 1;
  for (const Plane& plane : planes)
    row_bytes += plane.row_bytes;
  const uint64_t chunk = std::clamp<uint64_t>(kChunkBytes / row_bytes, 1, std::max<uint64_t>(rows, 1));
  std::vector<std::vector<uint8_t>> buffers(planes.size());
  for (uint64_t first = 0; first < rows; first += chunk) {
    const uint64_t count = std::min(chunk, rows - first);
    for (size_t p = 0; p < planes.size(); ++p)
      buffers[p].assign(count * planes[p].row_bytes, 0);
    for_each_row(first, count, threads, [&](uint64_t row) {
      std::vector<uint8_t*> at(planes.size());
      for (size_t p = 0; p < planes.size(); ++p)
        at[p] = buffers[p].data() + (row - first) * planes[p].row_bytes;
      fill(row, at);
    });
    for (size_t p = 0; p < planes.size(); ++p)
      CORTIQ_RETURN_IF_ERROR(sink.write_at(planes[p].offset + first * planes[p].row_bytes, buffers[p]));
  }
  return {};
}

} // namespace cortiq::formats

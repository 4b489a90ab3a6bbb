#include "runtime/experts/weight_leaves.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/artifact/artifact_file.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/checked_math.h"

namespace cortiq::runtime {
namespace {

using formats::Hash256;
using formats::kWeightLeafBytes;

static_assert(kWeightLeafBytes % kReadAlignment == 0);

/// Reads `bytes` from `offset`; `to` has whole pages, as reads past the page cache ask for.
bool read_whole(int descriptor, uint64_t offset, uint64_t bytes, uint8_t* to) {
  const uint64_t room = formats::ceil_div(bytes, kReadAlignment) * kReadAlignment;
  for (uint64_t got = 0; got < bytes;) {
    const uint64_t from = got / kReadAlignment * kReadAlignment;
    const ssize_t n = pread(descriptor, to + from, room - from, static_cast<off_t>(offset + from));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0 || from + static_cast<uint64_t>(n) <= got)
      return false;
    got = from + static_cast<uint64_t>(n);
  }
  return true;
}

} // namespace

bool WeightLeaves::hold(int descriptor, const UnitRead& read, const FileStamp& stamp) {
  std::lock_guard lock(mutex_);
  const uint64_t end = read.offset + read.needed;
  if (read.needed == 0 || read.offset < hashes_.offset || end > hashes_.offset + hashes_.bytes ||
      hashes_.leaves.size() != formats::ceil_div(hashes_.bytes, kWeightLeafBytes) * sizeof(Hash256))
    return false;
  if (!(stamp == stamp_) || good_.empty()) {
    stamp_ = stamp;
    good_.assign(hashes_.leaves.size() / sizeof(Hash256), false);
  }
  const uint64_t last = (end - 1 - hashes_.offset) / kWeightLeafBytes;
  for (uint64_t leaf = (read.offset - hashes_.offset) / kWeightLeafBytes; leaf <= last; ++leaf) {
    if (good_[leaf])
      continue;
    if (!hold_leaf(descriptor, read, leaf))
      return false;
    struct stat now;
    good_[leaf] = fstat(descriptor, &now) == 0 && FileStamp{static_cast<uint64_t>(now.st_size), now.st_mtim} == stamp_;
  }
  return true;
}

bool WeightLeaves::hold_leaf(int descriptor, const UnitRead& read, uint64_t leaf) {
  const uint64_t begin = hashes_.offset + leaf * kWeightLeafBytes;
  const uint64_t bytes = std::min(kWeightLeafBytes, hashes_.offset + hashes_.bytes - begin);
  std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kReadAlignment, kWeightLeafBytes), &std::free);
  auto* data = static_cast<uint8_t*>(memory.get());
  if (!data || !read_whole(descriptor, begin, bytes, data))
    return false;
  const Hash256 found = formats::hash256({data, bytes});
  if (std::memcmp(found.data(), hashes_.leaves.data() + leaf * sizeof(Hash256), found.size()) != 0)
    return false;
  const uint64_t first = std::max(begin, read.offset), end = std::min(begin + bytes, read.offset + read.needed);
  std::copy(data + (first - begin), data + (end - begin), read.to + (first - read.offset));
  return true;
}

} // namespace cortiq::runtime

#include "formats/page_release.h"

#include <sys/mman.h>
#include <unistd.h>

namespace cortiq::formats {

void release_pages(std::span<const uint8_t> bytes) {
#ifdef MADV_PAGEOUT // unlike MADV_DONTNEED it never drops content, whatever kind of memory this is
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end)
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT);
#endif
}

} // namespace cortiq::formats

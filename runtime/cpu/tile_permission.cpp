#include "runtime/cpu/tile_permission.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cortiq::runtime {

Status request_tile_permission(std::span<const std::string> features) {
  if (std::none_of(features.begin(), features.end(), [](const std::string& name) { return name.starts_with("amx_"); }))
    return {};
#if defined(__x86_64__) && defined(__linux__)
  // Linux, arch/x86/include/uapi/asm/prctl.h: ARCH_REQ_XCOMP_PERM, for the state component of tile data.
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0)
    return {};
  return unsupported("its code uses AMX tiles, which the operating system does not let this process use (" +
                     std::string(std::strerror(errno)) + ")");
#else
  return unsupported("its code uses AMX tiles, which this system does not have");
#endif
}

} // namespace cortiq::runtime

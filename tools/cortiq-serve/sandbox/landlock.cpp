// Landlock by its system calls: the headers of Debian 12 know its first versions only.

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/cortiq-serve/sandbox/layers.h"

namespace cortiq::serve {
namespace {

// The same numbers on every machine.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
constexpr uint64_t kReadFile = 1u << 2, kReadFolder = 1u << 3;

/// struct landlock_ruleset_attr; kernels take a longer one whose end is zero.
struct Ruleset {
  uint64_t files = 0, network = 0, scopes = 0;
};
struct __attribute__((packed)) PathRule {
  uint64_t allowed;
  int32_t folder;
};

/// All that version `abi` can take away.
Ruleset everything(long abi) {
  Ruleset out;
  // 13 rights from the beginning on; renaming into other folders, truncation and ioctl on devices came later.
  out.files = (uint64_t{1} << (abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13)) - 1;
  if (abi >= 4)
    out.network = 0b11; // bind and connect by TCP
  if (abi >= 6)
    out.scopes = 0b01; // abstract sockets of others
  return out;
}

void allow_reading(int rules, const char* folder) {
  const int fd = open(folder, O_PATH | O_CLOEXEC | O_DIRECTORY);
  if (fd < 0)
    return; // then there is nothing to read
  const PathRule rule = {kReadFile | kReadFolder, fd};
  syscall(kAddRule, rules, kPathBeneath, &rule, 0);
  close(fd);
}

} // namespace

std::string apply_landlock(bool system_facts) {
  const long abi = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (abi < 1)
    return "the kernel has no Landlock (" + std::string(std::strerror(errno)) + ")";
  Ruleset attributes = everything(abi);
  if (system_facts)
    attributes.network &= ~uint64_t{1}; // it does not listen yet
  const long rules = syscall(kCreateRuleset, &attributes, sizeof(attributes), 0);
  if (rules < 0)
    return "Landlock takes no rules (" + std::string(std::strerror(errno)) + ")";
  if (system_facts)
    for (const char* folder : {"/proc", "/sys"})
      allow_reading(static_cast<int>(rules), folder);
  const bool applied = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(kRestrictSelf, rules, 0) == 0;
  const int error = errno;
  close(static_cast<int>(rules));
  return applied ? std::string() : "Landlock refuses (" + std::string(std::strerror(error)) + ")";
}

} // namespace cortiq::serve

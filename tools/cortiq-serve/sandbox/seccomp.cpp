// The system calls that answering takes. Whatever is not listed fails with EPERM: libraries that ask for more than they
// need go on without.

#include "tools/cortiq-serve/sandbox/layers.h"

#ifndef CORTIQ_HAVE_SECCOMP

namespace cortiq::serve {

std::string apply_seccomp() {
  return "this program was built without libseccomp";
}

} // namespace cortiq::serve

#else

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

namespace cortiq::serve {
namespace {

// With any arguments. Files and sockets are those that are open.
constexpr const char* kCalls[] = {
    // reading experts, writing logs, connections
    "read", "readv", "pread64", "preadv", "write", "writev", "close", "fstat", "newfstatat", "lseek", "fadvise64",
    "io_uring_enter", "accept", "accept4", "listen", "recvfrom", "recvmsg", "sendto", "sendmsg", "shutdown",
    "getsockname", "getpeername", "getsockopt", "setsockopt", "poll", "ppoll", "select", "pselect6",
    // memory
    "brk", "munmap", "mremap", "madvise", "mbind", "get_mempolicy", "set_mempolicy",
    // threads and time
    "futex", "sched_yield", "sched_getaffinity", "sched_setaffinity", "getcpu", "membarrier", "rseq", "set_robust_list",
    "set_tid_address", "nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday",
    "restart_syscall", "exit", "exit_group", "getpid", "gettid", "getrandom", "getrusage", "sysinfo",
    // signals
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "sigaltstack"};

/// Argument `number` is `value`.
scmp_arg_cmp is(unsigned number, uint64_t value) {
  return {number, SCMP_CMP_EQ, value, 0};
}
/// The low half of it is: what lies above a 32-bit argument means nothing.
scmp_arg_cmp is_word(unsigned number, uint32_t value) {
  return {number, SCMP_CMP_MASKED_EQ, UINT32_MAX, value};
}
/// Those bits of it that `mask` has are `value`.
scmp_arg_cmp has(unsigned number, uint64_t mask, uint64_t value) {
  return {number, SCMP_CMP_MASKED_EQ, mask, value};
}

struct Filter {
  scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  int error = context ? 0 : ENOMEM;

  ~Filter() {
    if (context)
      seccomp_release(context);
  }

  template <class... Conditions>
  void add(uint32_t action, const char* name, Conditions... conditions) {
    const int number = seccomp_syscall_resolve_name(name);
    if (error == 0 && number != __NR_SCMP_ERROR) // a machine may lack the older of two calls
      error = -seccomp_rule_add(context, action, number, sizeof...(conditions), conditions...);
  }
  template <class... Conditions>
  void allow(const char* name, Conditions... conditions) {
    add(SCMP_ACT_ALLOW, name, conditions...);
  }
};

} // namespace

std::string apply_seccomp() {
  Filter filter;
  if (filter.error == 0) // all threads, or none
    filter.error = -seccomp_attr_set(filter.context, SCMP_FLTATR_CTL_TSYNC, 1);
  for (const char* name : kCalls)
    filter.allow(name);
  // No memory that can be executed.
  filter.allow("mmap", has(2, PROT_EXEC, 0));
  filter.allow("mprotect", has(2, PROT_EXEC, 0));
  // Threads, but no processes. The flags of the newer call cannot be looked at: the library then takes the older one.
  filter.allow("clone", has(0, CLONE_THREAD, CLONE_THREAD));
  filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  // Signals to itself, limits for reading, names of threads.
  filter.allow("tgkill", is_word(0, static_cast<uint32_t>(getpid())));
  filter.allow("prlimit64", is(2, 0));
  filter.allow("prctl", is_word(0, PR_SET_NAME));
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_SETFL})
    filter.allow("fcntl", is_word(1, static_cast<uint32_t>(command)));
  for (const uint32_t request : {uint32_t{FIONREAD}, uint32_t{FIONBIO}, uint32_t{TCGETS}})
    filter.allow("ioctl", is_word(1, request));
  if (filter.error == 0)
    filter.error = -seccomp_load(filter.context);
  return filter.error == 0 ? std::string()
                           : "the kernel takes no seccomp filter (" + std::string(std::strerror(filter.error)) + ")";
}

} // namespace cortiq::serve

#endif

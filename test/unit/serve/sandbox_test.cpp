// What is left to a process inside, tried from inside: each trial is a child that reports by its exit status.

#include "tools/cortiq-serve/sandbox/sandbox.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cortiq::serve {
namespace {

constexpr int kNoSandbox = 99;

/// Runs `inside` in a child that has given up what a server gives up; its result is the exit status.
int run_inside(const std::function<int()>& inside, bool in_older_thread) {
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<bool> closed{false};
    int result = -1;
    std::string missing;
    // A thread from before both steps: the first cannot reach it, the second has to.
    std::thread older([&] {
      while (!closed)
        sched_yield();
      if (in_older_thread)
        result = inside();
    });
    const bool whole =
        leave_files(SandboxMode::kStrict, missing).ok() && leave_system(SandboxMode::kStrict, missing).ok();
    closed = true;
    older.join();
    if (!in_older_thread)
      result = inside();
    _exit(whole ? result : kNoSandbox);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// 0, or the errno of a call that returned -1.
int outcome(long result) {
  return result == -1 ? errno : 0;
}

struct Trial {
  const char* name;
  std::function<int()> run;
  bool allowed = false;
};

const Trial kTrials[] = {
    {"open to read", [] { return outcome(open("/etc/passwd", O_RDONLY)); }},
    {"open to write", [] { return outcome(open("/tmp/cortiq-sandbox", O_WRONLY | O_CREAT, 0600)); }},
    {"open below /proc", [] { return outcome(open("/proc/self/mem", O_RDWR)); }},
    {"open by io_uring", [] { return outcome(syscall(SYS_io_uring_setup, 4, nullptr)); }},
    {"unlink", [] { return outcome(unlink("/tmp/cortiq-sandbox-nothing")); }},
    {"rename", [] { return outcome(rename("/tmp/cortiq-sandbox-a", "/tmp/cortiq-sandbox-b")); }},
    {"execve", [] { return outcome(execl("/bin/true", "true", nullptr)); }},
    {"fork", [] { return outcome(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
    {"socket", [] { return outcome(socket(AF_INET, SOCK_STREAM, 0)); }},
    {"socketpair",
     [] {
       int pair[2];
       return outcome(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
     }},
    {"connect",
     [] {
       sockaddr_in to{};
       to.sin_family = AF_INET;
       return outcome(connect(0, reinterpret_cast<sockaddr*>(&to), sizeof(to)));
     }},
    {"executable memory",
     [] {
       return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
     }},
    {"memory made executable",
     [] {
       void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       return page == MAP_FAILED ? 0 : outcome(mprotect(page, 4096, PROT_READ | PROT_EXEC));
     }},
    {"memory in a file", [] { return outcome(memfd_create("x", 0)); }},
    {"ptrace", [] { return outcome(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
    {"signals to others", [] { return outcome(kill(getppid(), 0)); }},
    {"another user", [] { return outcome(setuid(1)); }},
    {"mount", [] { return outcome(syscall(SYS_mount, "a", "/tmp", "tmpfs", 0, nullptr)); }},
    {"bpf", [] { return outcome(syscall(SYS_bpf, 0, nullptr, 0)); }},
    {"memory",
     [] {
       return mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno
                                                                                                               : 0;
     },
     true},
    {"threads",
     [] {
       int seen = 1;
       std::thread([&] { seen = 0; }).join();
       return seen;
     },
     true},
    {"writing to what is open", [] { return outcome(write(2, "", 0)); }, true},
};

TEST(Sandbox, LeavesWhatAnsweringTakesAndNothingElse) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer asks the system about memory in ways that the sandbox refuses";
#endif
#endif
  if (run_inside([] { return 0; }, false) == kNoSandbox)
    GTEST_SKIP() << "this kernel or build lacks Landlock or seccomp";
  for (const bool older : {false, true})
    for (const Trial& trial : kTrials) {
      const int result = run_inside(trial.run, older);
      EXPECT_TRUE(trial.allowed ? result == 0 : result == EPERM || result == EACCES)
          << trial.name << (older ? ", in a thread from before" : "") << ": " << result << " ("
          << std::strerror(std::abs(result)) << ")";
    }
}

TEST(Sandbox, DoesNotGoWithADriver) {
  std::string missing;
  SandboxMode mode = SandboxMode::kStrict;
  EXPECT_TRUE(allow_driver(false, mode, missing).ok());
  EXPECT_NE(allow_driver(true, mode, missing).message().find("--device none"), std::string::npos);
  mode = SandboxMode::kAuto;
  EXPECT_TRUE(allow_driver(true, mode, missing).ok());
  EXPECT_EQ(mode, SandboxMode::kOff);
  EXPECT_NE(missing.find("driver"), std::string::npos);
}

TEST(Sandbox, IsOffUnlessAskedFor) {
  const pid_t child = fork();
  if (child == 0) {
    std::string missing;
    const bool done = leave_files(SandboxMode::kOff, missing).ok() && leave_system(SandboxMode::kOff, missing).ok();
    _exit(done && open("/dev/null", O_RDONLY) >= 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

} // namespace
} // namespace cortiq::serve

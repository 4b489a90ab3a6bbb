#include "tools/cortiq-serve/sandbox/sandbox.h"

#include "tools/cortiq-serve/sandbox/layers.h"

namespace cortiq::serve {
namespace {

Status settle(SandboxMode mode, const std::string& why, std::string& missing) {
  if (why.empty())
    return {};
  if (mode == SandboxMode::kStrict)
    return unsupported("--sandbox=strict cannot be had here: " + why +
                       "; --sandbox=auto takes what there is, and says what is missing");
  missing += (missing.empty() ? "" : "; ") + why;
  return {};
}

} // namespace

SandboxMode parse_sandbox_mode(const std::string& word) {
  return word == "strict" ? SandboxMode::kStrict : word == "auto" ? SandboxMode::kAuto : SandboxMode::kOff;
}

Status allow_driver(bool driver, SandboxMode& mode, std::string& missing) {
  if (!driver || mode == SandboxMode::kOff)
    return {};
  const Status status =
      settle(mode, "the driver of a GPU opens devices and files as it works (--device none runs the CPU)", missing);
  mode = SandboxMode::kOff;
  return status;
}

Status leave_files(SandboxMode mode, std::string& missing) {
  return mode == SandboxMode::kOff ? Status() : settle(mode, apply_landlock(true), missing);
}

Status leave_system(SandboxMode mode, std::string& missing) {
  if (mode == SandboxMode::kOff)
    return {};
  // The thread that takes connections, and those it will start, need no facts about the machine any more. Where this
  // layer is missing, the first step has said so.
  apply_landlock(false);
  return settle(mode, apply_seccomp(), missing);
}

} // namespace cortiq::serve

#pragma once

// What a server gives up once it has what it needs: whoever takes it over through a request finds no file, no program
// and no network but the connections that are there.
//
// Two layers. Landlock takes away paths and connections from the calling thread and those that it starts; seccomp takes
// away, from every thread there is and will be, all system calls but those that answering takes. Neither can be undone.

#include <string>

#include "formats/status.h"

namespace cortiq::serve {

enum class SandboxMode {
  kOff,
  kAuto,  ///< what the kernel offers
  kStrict ///< all of it, or the server does not start
};

/// "off", "auto" or "strict".
SandboxMode parse_sandbox_mode(const std::string& word);

/// A GPU's driver opens devices and files whenever it wants to, and makes code: with one there is no sandbox. That is a
/// failure with kStrict; kAuto becomes kOff, and `missing` says why.
Status allow_driver(bool driver, SandboxMode& mode, std::string& missing);

/// First step, when everything is loaded and before threads are started that work: the calling thread and those that it
/// starts can open nothing but what is below /proc and /sys, for reading, and connect to nobody. `missing` receives
/// what the kernel does not offer, as a clause; with kStrict that is a failure.
Status leave_files(SandboxMode mode, std::string& missing);

/// Second step, when the server listens: every thread is left with the system calls that answering takes. Memory can no
/// longer be made executable, nothing can be opened, started, connected or traced.
Status leave_system(SandboxMode mode, std::string& missing);

} // namespace cortiq::serve

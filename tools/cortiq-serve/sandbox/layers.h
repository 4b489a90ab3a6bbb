#pragma once

// The two layers of the sandbox, each for itself.

#include <string>

namespace cortiq::serve {

/// Restricts the calling thread; with `system_facts` /proc and /sys stay readable. Empty, or why it could not be done.
std::string apply_landlock(bool system_facts);

/// Restricts all threads. Empty, or why it could not be done.
std::string apply_seccomp();

} // namespace cortiq::serve

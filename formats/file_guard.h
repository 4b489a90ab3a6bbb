#pragma once

// What happens when a file is cut, or its medium fails, while it is mapped: the system answers the next access with
// SIGBUS. Readers register what they map; a program that installed the guard then ends with one sentence that names the
// file and exit code 2 instead of a crash.

#include <cstddef>
#include <string>

namespace cortiq::formats {

/// Registers `size` bytes from `begin` as the mapping of the file `path`. Nothing is installed by this.
void watch_mapping(const void* begin, size_t size, const std::string& path);

/// Forgets the mapping that starts at `begin`, if there is one. Call it before unmapping.
void unwatch_mapping(const void* begin);

/// Installs the guard for this process; `program` starts its sentence and has to live as long as the process. A SIGBUS
/// outside registered mappings goes to whoever handled it before. For tools' main(): a library leaves signals alone.
void install_file_guard(const char* program);

} // namespace cortiq::formats

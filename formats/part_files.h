#pragma once

// Files and folders under temporary names, and that none of them outlives its program: signals that end it remove them,
// and what a killed one left is removed by the next that writes to the same name.

#include <string>

#include "formats/status.h"

namespace cortiq::formats {

/// A new part: an empty file or folder beside its destination, locked for as long as `fd` is open.
struct Part {
  std::string path;
  int fd = -1;
};

/// Creates a file `path`.part-xxxxxx.cortiq, or with `folder` a folder that holds a lock file of ours, after removing
/// those that nobody holds any more: files of exactly this name, and folders with our lock and files only.
/// It is watched; call unwatch_part() when it has got its name or was removed.
StatusOr<Part> create_part(const std::string& path, bool folder = false);

/// Adds to what signals remove, and takes from it. Folders are removed last and only when empty then. Of more than a
/// few thousand at once the last ones are left to the next run.
void watch_part(const std::string& path);
void unwatch_part(const std::string& path);
/// Removes all that is watched, for whoever ends the program at once. May be called by signal handlers.
void remove_watched_parts();

/// For tools' main(): signals that ask a program to end (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU) remove
/// what is watched before they end it as usual; those that are ignored stay ignored. Writing beyond the size that the
/// system allows becomes an error like a full disk instead of a signal, and inputs are protected (input_files.h).
void prepare_to_write();

} // namespace cortiq::formats

#pragma once

// The ways to read a file of experts.

#include <memory>

#include "runtime/experts/unit_file.h"
#include "runtime/experts/unit_reader.h"

namespace cortiq::runtime {

/// Null where the kernel offers no io_uring, does not allow it, or the build has no liburing; `file` is then as before.
std::unique_ptr<UnitReader> make_uring_reader(UnitFile& file, UnitReader::Done& done);
std::unique_ptr<UnitReader> make_thread_reader(UnitFile file, UnitReader::Done done);

} // namespace cortiq::runtime

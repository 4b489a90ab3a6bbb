#pragma once

// Where a program may do more than write lines.

namespace cortiq::formats {

/// Whether text on `fd` may have colours: it is a terminal that knows them, and NO_COLOR (no-color.org) does not forbid
/// them.
bool shows_colours(int fd);

} // namespace cortiq::formats

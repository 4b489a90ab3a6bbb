#include "formats/terminal.h"

#include <cstdlib>
#include <string_view>
#include <unistd.h>

namespace cortiq::formats {

bool shows_colours(int fd) {
  const char* forbidden = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fd) && !(forbidden && *forbidden) && terminal && std::string_view(terminal) != "dumb";
}

} // namespace cortiq::formats

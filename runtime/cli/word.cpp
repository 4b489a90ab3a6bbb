#include "runtime/cli/word.h"

namespace cortiq::runtime::cli {

std::string some_word(const std::string& text) {
  return text.empty() ? "takes a word, not an empty one; leave the option out to go without" : "";
}

} // namespace cortiq::runtime::cli

#pragma once

// A check for options that take a name.

#include <string>

namespace cortiq::runtime::cli {

/// Why `text` is no word, empty where it is one: an empty word is a variable of a script that was never set, and no
/// wish to go without what the option asks for.
std::string some_word(const std::string& text);

} // namespace cortiq::runtime::cli

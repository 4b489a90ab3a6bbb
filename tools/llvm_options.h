#pragma once

// The options of a program that reads them with LLVM's parser, described as runtime/cli/describe_options.h does.

#include <string_view>

namespace cortiq::tools {

/// Whether the command line is `PROGRAM --help-json`.
bool asks_for_description(int argc, const char* const* argv);

/// Prints the description of all options that are registered. Of `overview` the first line says what the program does.
void describe_llvm_options(std::string_view program, std::string_view overview);

} // namespace cortiq::tools

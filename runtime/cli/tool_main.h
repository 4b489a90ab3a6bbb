#pragma once

// What the programs' mains have alike: how a command line is read, how errors are said, how a program ends.

#include <functional>
#include <optional>
#include <string>

#include "formats/status.h"

namespace CLI {
class App;
} // namespace CLI

namespace cortiq::runtime::cli {

/// The exit status for what is wrong with the command line, a file or the machine.
inline constexpr int kBadInput = 2;

/// "PROGRAM: SENTENCE" on stderr, one line whatever bytes of a command line it repeats; nothing when the sentence is
/// empty: a child process has said it already. Returns `code`.
int complain(const std::string& program, std::string sentence, int code);

/// Reads a command line. No value: go on. Otherwise the status to end with: --help, --version and --help-json have been
/// answered, or what is wrong was said.
std::optional<int> parse_command_line(CLI::App& app, const std::string& program, int argc, const char* const* argv);

/// The whole of a main(): `work` gives the exit status, or what went wrong, which is said. A mapped file that is cut,
/// memory that runs out (then `out_of_memory` is said) and what libraries throw end the program with a sentence; that
/// standard output could not be written shows in the status. `program` lives as long as the process.
int run_tool(const char* program, const std::string& out_of_memory, const std::function<StatusOr<int>()>& work);

} // namespace cortiq::runtime::cli

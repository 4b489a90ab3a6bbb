#pragma once

// What cortiq-inspect can do, as a table: one mode is one source file that defines a Mode, one declaration in modes.h
// and one row in modes.cpp. main.cpp turns the table into command-line flags and knows no mode by name.

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "formats/status.h"

namespace cortiq::inspect {

/// An option that a mode takes beside FILE. Modes that share an option give it the same name, value and help.
struct Option {
  const char* name;            ///< "--output", or "-o,--output"
  const char* value = nullptr; ///< what its value is called in the help; null for a plain flag
  const char* help = "";
  bool required = false;
};

inline constexpr Option kJson = {"--json", nullptr, "print JSON instead of text"};
inline constexpr Option kTarget = {"--target", "NAME", "of an artifact of several targets: only this one's kernels"};
inline constexpr Option kOutput = {"-o,--output", "OUT", "file to write", true};

/// The command line of one run, already held against the mode's options.
class Arguments {
public:
  std::string file;                                        ///< the positional FILE
  std::string value;                                       ///< the value of the mode's own flag, if it takes one
  std::map<std::string, std::string, std::less<>> options; ///< by name without dashes ("output"); flags have ""

  bool has(std::string_view name) const { return options.contains(name); }
  /// The option's value, or "" if it was not given.
  std::string_view get(std::string_view name) const {
    const auto it = options.find(name);
    return it == options.end() ? std::string_view() : std::string_view(it->second);
  }
};

struct Mode {
  const char* flag;            ///< "--decode"; null for what happens without any mode's flag
  const char* value = nullptr; ///< what the flag's value is called; null if it takes none
  const char* help;
  std::span<const Option> options;
  bool takes_file = true;
  /// Prints to stdout. A failure is printed by main.cpp as one sentence on stderr and becomes the exit code.
  Status (*run)(const Arguments&);
};

} // namespace cortiq::inspect

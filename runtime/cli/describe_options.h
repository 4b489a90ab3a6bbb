#pragma once

// The option tree of a program as JSON, from which manual pages and shell completions are made when it is built.

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace cortiq::runtime::cli {

/// Name, description, positionals, options and commands of `app`:
/// {"name", "description", "footer", "positionals": [{"name", "description", "required"}], "options": [{"names",
/// "value", "choices", "default", "description", "group"}], "commands": [the same]}. "value" is "" for a flag.
std::string describe_options(const CLI::App& app);

/// Whether the command line is `PROGRAM --help-json`; the description is on the standard output then, and nothing else
/// is to be done.
bool described_options(const CLI::App& app, int argc, const char* const* argv);

} // namespace cortiq::runtime::cli

// cortiq-inspect: says what is in a model file. Exit codes: 0 done, 2 bad input or bad command line, 1 a bug of ours.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "formats/artifact/artifact_file.h"
#include "formats/part_files.h"
#include "runtime/cli/tool_main.h"
#include "tools/cortiq-inspect/modes.h"

namespace {

using cortiq::inspect::Arguments;
using cortiq::inspect::Mode;
using cortiq::inspect::Option;

constexpr char kProgram[] = "cortiq-inspect";

/// "output" for "-o,--output".
std::string plain_name(const std::string& name) {
  return name.substr(name.rfind("--") + 2);
}

/// What the parser fills in for one flag or option; deque entries keep their address.
struct Given {
  CLI::Option* option = nullptr;
  std::string value;
  bool flag = false;
};

class CommandLine {
public:
  explicit CommandLine(CLI::App& app) : app_(app) {
    app.add_option("FILE", arguments_.file, "a CMF, GGUF or artifact file, or what the mode names");
    for (const Mode* mode : cortiq::inspect::modes()) {
      if (mode->flag != nullptr)
        modes_[mode] = add(mode->flag, mode->value, mode->help, "Modes (without one: list the content)");
      for (const Option& option : mode->options)
        if (!options_.contains(option.name))
          options_[option.name] = add(option.name, option.value, option.help, "Options");
    }
  }

  /// The mode asked for, with `arguments` filled in.
  cortiq::StatusOr<const Mode*> select() {
    const Mode* chosen = nullptr;
    for (const auto& [mode, given] : modes_) {
      if (given->option->count() == 0)
        continue;
      if (chosen != nullptr)
        return cortiq::invalid(std::string(mode->flag) + " and " + chosen->flag + " exclude each other; see --help");
      chosen = mode;
      arguments_.value = given->value;
    }
    if (chosen == nullptr)
      chosen = cortiq::inspect::modes()[0];
    if (const std::string problem = check_options(*chosen); !problem.empty())
      return cortiq::invalid(problem + "; see --help");
    return chosen;
  }

  const Arguments& arguments() const { return arguments_; }

private:
  Given* add(const std::string& name, const char* value, const char* help, const char* group) {
    Given& given = given_.emplace_back();
    given.option = value == nullptr ? app_.add_flag(name, given.flag, help)
                                    : app_.add_option(name, given.value, help)->type_name(value);
    given.option->group(group);
    return &given;
  }

  std::string check_options(const Mode& mode) {
    const std::string who = mode.flag == nullptr ? "listing a file" : mode.flag;
    if (mode.takes_file == arguments_.file.empty())
      return who + (mode.takes_file ? " needs a FILE" : " takes no FILE");
    std::map<std::string, bool> takes;
    for (const Option& option : mode.options) {
      takes[option.name] = true;
      const Given& given = *options_.at(option.name);
      if (given.option->count() > 0)
        arguments_.options[plain_name(option.name)] = given.value;
      else if (option.required)
        return who + " needs --" + plain_name(option.name);
    }
    for (const auto& [name, given] : options_)
      if (given->option->count() > 0 && !takes.contains(name))
        return who + " does not take --" + plain_name(name);
    return "";
  }

  CLI::App& app_;
  std::deque<Given> given_;
  std::map<const Mode*, Given*> modes_;
  std::map<std::string, Given*> options_;
  Arguments arguments_;
};

cortiq::StatusOr<int> run(int argc, char** argv) {
  CLI::App app("Says what is in a model file: CMF, GGUF or a compiled artifact.", kProgram);
  app.set_version_flag("--version", "cortiq-inspect " CORTIQ_VERSION " (reads CMF 2, GGUF 2 and 3, artifact schema " +
                                        std::to_string(cortiq::formats::kArtifactSchemaVersion) + ")");
  CommandLine line(app);
  if (const std::optional<int> end = cortiq::runtime::cli::parse_command_line(app, kProgram, argc, argv))
    return *end;
  CORTIQ_ASSIGN_OR_RETURN(const Mode* const mode, line.select());
  CORTIQ_RETURN_IF_ERROR(mode->run(line.arguments()));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::prepare_to_write();
  return cortiq::runtime::cli::run_tool(kProgram, "this file; a machine with more can read it",
                                        [&] { return run(argc, argv); });
}

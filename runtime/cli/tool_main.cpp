#include "runtime/cli/tool_main.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "formats/file_guard.h"
#include "formats/standard_output.h"
#include "runtime/cli/describe_options.h"

namespace cortiq::runtime::cli {

int complain(const std::string& program, std::string sentence, int code) {
  std::replace_if(sentence.begin(), sentence.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  if (!sentence.empty())
    std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
  return code;
}

std::optional<int> parse_command_line(CLI::App& app, const std::string& program, int argc, const char* const* argv) {
  if (described_options(app, argc, argv))
    return 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return complain(program, std::string(error.what()) + "; see --help", kBadInput);
  }
  return std::nullopt;
}

int run_tool(const char* program, const std::string& out_of_memory, const std::function<StatusOr<int>()>& work) {
  formats::install_file_guard(program);
  try {
    const StatusOr<int> outcome = work();
    const int code =
        outcome.ok() ? *outcome : complain(program, outcome.status().message(), exit_code(outcome.status()));
    return formats::exit_code_after_output(program, code);
  } catch (const std::bad_alloc&) {
    return complain(program, "there is not enough memory for " + out_of_memory, kBadInput);
  } catch (const std::exception& error) {
    return complain(program, std::string("internal error: ") + error.what(), 1);
  }
}

} // namespace cortiq::runtime::cli

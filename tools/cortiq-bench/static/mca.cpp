#include "tools/cortiq-bench/static/mca.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/atomic_file.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"

extern char** environ;

namespace cortiq::bench {
namespace {

constexpr std::string_view kArm = "aarch64-linux-gnu", kX86 = "x86_64-linux-gnu";

struct Row {
  McaProcessor processor;
  std::string_view sets; ///< last words of kernels' names, with blanks around them
};

/// LLVM has schedules of its own for neoverse; cortex-a72 and cortex-a76 run with that of cortex-a57.
constexpr Row kProcessors[] = {
    {{"cortex-a72", kArm, ""}, " armv8 "},
    {{"cortex-a76", kArm, "+dotprod,+fullfp16"}, " armv8 dotprod "},
    {{"neoverse-n1", kArm, "+dotprod,+fullfp16"}, " armv8 dotprod "},
    {{"neoverse-v1", kArm, "+dotprod,+i8mm,+fullfp16"}, " armv8 dotprod i8mm "},
    {{"neoverse-v2", kArm, "+dotprod,+i8mm,+fullfp16"}, " armv8 dotprod i8mm "},
    {{"haswell", kX86, ""}, " v3 "},
    {{"znver3", kX86, ""}, " v3 "},
    {{"alderlake", kX86, ""}, " avxvnni "},
    {{"icelake-server", kX86, ""}, " avx512vnni avx512vbmi "},
    {{"znver4", kX86, ""}, " avx512vnni avx512vbmi "},
    {{"sapphirerapids", kX86, ""}, " avx512vnni avx512vbmi amx "},
};

/// So many that starting and draining the pipeline does not show; fewer of long bodies, which take as long to simulate.
constexpr size_t kMostIterations = 100, kLeastIterations = 20, kSimulated = 30000;

/// A branch names the start of its region: where it goes does not matter, but it has to read as a branch.
std::string with_target(const std::string& instruction, const std::string& label) {
  const std::string word = instruction.substr(0, instruction.find(' '));
  const bool branch = word.starts_with("b.") || word == "b" || word.starts_with('j');
  return branch ? word + " " + label : instruction;
}

Status run(const std::string& program, std::vector<std::string> arguments, const std::string& out,
           const std::string& complaints) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, complaints.c_str(), kFlags, 0600);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return io_error("cannot start " + formats::quote(program) + ": " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return io_error("cannot wait for " + formats::quote(program) + ": " + std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return {};
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile said, formats::MappedFile::open(complaints));
  const std::string text(said.bytes().begin(), said.bytes().end());
  return unsupported(formats::quote(program) + " failed: " + text.substr(0, text.find('\n')));
}

} // namespace

std::vector<McaProcessor> processors_of(std::string_view set) {
  std::vector<McaProcessor> out;
  for (const Row& row : kProcessors)
    if (row.sets.find(" " + std::string(set) + " ") != std::string_view::npos)
      out.push_back(row.processor);
  return out;
}

Status check_processor(const McaProcessor& processor, std::string_view set) {
  for (const McaProcessor& other : processors_of(set))
    if (other.triple != processor.triple)
      return invalid("--cpu " + std::string(processor.name) + " is not of the machine that " + std::string(set) +
                     " is code for");
  return {};
}

StatusOr<McaProcessor> find_processor(std::string_view name) {
  std::string names;
  for (const Row& row : kProcessors) {
    if (row.processor.name == name)
      return row.processor;
    names += (names.empty() ? "" : ", ") + std::string(row.processor.name);
  }
  return invalid("there is no processor " + formats::quote(name) + " to estimate for; --cpu takes " + names);
}

StatusOr<std::string> find_mca() {
  const char* search = std::getenv("PATH");
  for (const char* name : {"llvm-mca-19", "llvm-mca"})
    for (std::string rest = search ? search : ""; !rest.empty();) {
      const size_t colon = rest.find(':');
      const std::string path = rest.substr(0, colon) + "/" + name;
      if (access(path.c_str(), X_OK) == 0)
        return path;
      rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    }
  return unsupported(
      "no cycles: they are estimated by llvm-mca-19, which is not on PATH (Debian's package llvm-19 has it)");
}

std::string mca_input(const McaProcessor& processor, std::span<const Strand> strands) {
  std::string text = processor.triple == kX86 ? ".intel_syntax noprefix\n" : "";
  for (size_t i = 0; i < strands.size(); ++i) {
    const std::string label = "strand" + std::to_string(i);
    text += "# LLVM-MCA-BEGIN " + label + "\n" + label + ":\n";
    for (const std::string& instruction : strands[i].body)
      text += with_target(instruction, label) + "\n";
    text += "# LLVM-MCA-END " + label + "\n";
  }
  return text;
}

StatusOr<std::vector<double>> read_mca_output(const std::string& json, size_t regions) {
  const auto read = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto list = read.is_object() ? read.find("CodeRegions") : read.end();
  if (!read.is_object() || list == read.end() || !list->is_array() || list->size() != regions)
    return unsupported("llvm-mca printed something else than was asked for; version 19 is the one that is known");
  std::vector<double> out;
  for (const auto& region : *list) {
    const auto summary = region.is_object() ? region.value("SummaryView", nlohmann::json()) : nlohmann::json();
    const double iterations = summary.is_object() ? summary.value("Iterations", 0.0) : 0;
    if (iterations <= 0)
      return unsupported("llvm-mca printed no cycles; version 19 is the one that is known");
    out.push_back(summary.value("TotalCycles", 0.0) / iterations);
  }
  return out;
}

StatusOr<std::vector<double>> estimate_cycles(const std::string& program, const McaProcessor& processor,
                                              std::span<const Strand> strands, const std::string& folder) {
  if (strands.empty())
    return std::vector<double>();
  const std::string in = folder + "/strands.s", out = folder + "/cycles.json", complaints = folder + "/complaints";
  const std::string text = mca_input(processor, strands);
  CORTIQ_RETURN_IF_ERROR(
      formats::write_file(in, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  size_t longest = 1;
  for (const Strand& strand : strands)
    longest = std::max(longest, strand.body.size());
  std::vector<std::string> arguments = {
      "-mtriple=" + std::string(processor.triple),
      "-mcpu=" + std::string(processor.name),
      "-iterations=" + std::to_string(std::clamp(kSimulated / longest, kLeastIterations, kMostIterations)),
      "--json",
      "--instruction-info=0",
      "--resource-pressure=0"};
  if (!processor.attributes.empty())
    arguments.push_back("-mattr=" + std::string(processor.attributes));
  arguments.push_back(in);
  CORTIQ_RETURN_IF_ERROR(run(program, std::move(arguments), out, complaints));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile json, formats::MappedFile::open(out));
  return read_mca_output(std::string(json.bytes().begin(), json.bytes().end()), strands.size());
}

} // namespace cortiq::bench

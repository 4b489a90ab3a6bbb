#include "tools/cortiq-inspect/runnable.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/quote.h"
#include "runtime/cli/compiler_process.h"
#include "runtime/loader/load.h"
#include "runtime/text/text_section.h"
#include "runtime/text/text_source.h"
#include "runtime/text/tokenizer.h"

extern char** environ;

namespace cortiq::inspect {
namespace {

using formats::CmfFile;
using runtime::text::TextConfig;
using runtime::text::Tokenizer;

/// What of a child's messages is kept; its failures are one line each.
constexpr size_t kMostMessages = 65536;

/// The sentence without the file's name before it: the listing has said which file it is about.
std::string without_path(const std::string& sentence, const std::string& path) {
  const std::string name = formats::quote(path);
  if (!sentence.starts_with(name))
    return sentence;
  const std::string rest = sentence.substr(name.size());
  return rest.starts_with(": ") ? rest.substr(2) : "the file" + rest;
}

const std::string& path_of(const ModelFile& model) {
  return std::visit([](const auto& file) -> const std::string& { return file.path(); }, model);
}

/// The last line that is not empty, without the program's name before it.
std::string last_sentence(const std::string& messages) {
  const size_t end = messages.find_last_not_of('\n');
  if (end == std::string::npos)
    return "";
  const size_t start = messages.rfind('\n', end);
  std::string line = messages.substr(start == std::string::npos ? 0 : start + 1, end + 1);
  line.resize(line.find_last_not_of('\n') + 1);
  constexpr std::string_view kName = "cortiq-compile: ";
  return line.starts_with(kName) ? line.substr(kName.size()) : line;
}

struct ChildEnd {
  int status = 0; ///< as waitpid() gives it
  std::string messages;
};

/// Lets the compiler do everything up to machine code. No weight is packed and nothing is written.
StatusOr<ChildEnd> try_compile(const std::string& program, const std::string& path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return io_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  std::string name = program, emit = "--emit=asm", end_of_options = "--", file = path;
  char* argv[] = {name.data(), emit.data(), end_of_options.data(), file.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ChildEnd out;
  char buffer[4096];
  for (ssize_t got; error == 0 && (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    if (out.messages.size() < kMostMessages)
      out.messages.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  if (error != 0)
    return io_error("cannot start " + formats::quote(program) + ": " + std::strerror(error));
  while (waitpid(child, &out.status, 0) < 0)
    if (errno != EINTR)
      return io_error(std::string("cannot wait for cortiq-compile: ") + std::strerror(errno));
  return out;
}

/// Refusals that need no compiler: what a file is by its own word, and payloads that have no decode.
Status known_refusal(const ModelFile& model) {
  CORTIQ_RETURN_IF_ERROR(std::visit(
      [](const auto& file) {
        if constexpr (std::is_same_v<std::decay_t<decltype(file)>, CmfFile>)
          return file.check_runnable();
        else
          return file.check_model();
      },
      model));
  return {};
}

Capability model_capability(const ModelFile& model) {
  Capability out{"model", false, ""};
  if (const Status status = known_refusal(model); !status.ok()) {
    out.reason = without_path(status.message(), path_of(model));
    return out;
  }
  const StatusOr<std::string> compiler = runtime::cli::find_compiler();
  const StatusOr<ChildEnd> end =
      compiler.ok() ? try_compile(*compiler, path_of(model)) : StatusOr<ChildEnd>(compiler.status());
  if (!end.ok()) {
    out.present = std::nullopt;
    out.reason = compiler.ok() ? end.status().message()
                               : "cortiq-compile, which would say so, is neither beside this program nor on PATH";
    return out;
  }
  out.present = WIFEXITED(end->status) && WEXITSTATUS(end->status) == 0;
  if (!*out.present)
    out.reason = without_path(last_sentence(end->messages), path_of(model));
  if (!*out.present && out.reason.empty())
    out.reason = "cortiq-compile ends without a word on it";
  return out;
}

Capability chat_capability(const TextConfig& config) {
  if (config.chat_template.has_value())
    return {"chat", true, "with the file's own template"};
  return {"chat", true, "with the default template, the file has none"};
}

std::vector<Capability> without_text(const std::string& reason) {
  return {{"text", false, reason + "; prompts have to be token ids"}, {"chat", false, "it has no text side"}};
}

std::vector<Capability> text_capabilities(const ModelFile& model) {
  const auto source = std::visit([](const auto& file) { return runtime::text::read_text_source(file); }, model);
  if (!source.ok())
    return without_text(without_path(source.status().message(), path_of(model)));
  if (const auto tokenizer = Tokenizer::from_bytes(source->tokenizer_json); !tokenizer.ok())
    return without_text(tokenizer.status().message());
  std::string warnings;
  for (const std::string& warning : source->warnings)
    warnings += (warnings.empty() ? "" : "; ") + warning;
  return {{"text", true, warnings}, chat_capability(source->config)};
}

} // namespace

std::vector<Capability> capabilities_of(const ModelFile& model) {
  std::vector<Capability> out = {model_capability(model)};
  for (Capability& capability : text_capabilities(model))
    out.push_back(std::move(capability));
  return out;
}

std::vector<Capability> capabilities_of_artifact(const std::string& path) {
  Capability model{"model", true, ""};
  const auto artifact = runtime::load_artifact(path, {});
  if (!artifact.ok()) {
    model.present = false;
    model.reason = without_path(artifact.status().message(), path);
  }
  runtime::ArtifactLoadOptions only_tables;
  only_tables.check_features = false;
  only_tables.resolve = false;
  const auto tables = runtime::load_artifact(path, only_tables);
  std::vector<Capability> out = {model};
  std::vector<Capability> text = without_text("the artifact has no tokenizer");
  if (tables.ok())
    if (const auto bytes = (*tables)->file.section(formats::ArtifactSection::kTokenizer); !bytes.empty()) {
      const auto section = runtime::text::open_text_section(bytes);
      text = section.ok() ? std::vector<Capability>{{"text", true, ""}, chat_capability(section->config)}
                          : without_text(section.status().message());
    }
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

std::string describe(const Capability& capability) {
  const std::string reason = capability.reason;
  if (!capability.present)
    return "unknown, because " + reason;
  if (!*capability.present)
    return "no, because " + reason;
  return reason.empty() ? "yes" : "yes, " + reason;
}

formats::Json capabilities_json(const std::vector<Capability>& capabilities) {
  formats::Json out = formats::Json::object();
  for (const Capability& capability : capabilities)
    out[capability.name] = {{"runnable", capability.present ? formats::Json(*capability.present) : formats::Json()},
                            {"because", capability.reason}};
  return out;
}

} // namespace cortiq::inspect

// --disasm: the kernels of an artifact with what they were built for, through the system's objdump.

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/codec/codec.h"
#include "formats/quote.h"
#include "runtime/loader/load.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/modes.h"

extern char** environ;

namespace cortiq::inspect {
namespace {

/// Runs objdump on one kernel and returns what it printed. Kernels are told by their place, for one place may have
/// several names.
StatusOr<std::string> disassemble(const std::string& path, const artifact::Kernel& kernel) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return io_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  std::string start = "--start-address=" + std::to_string(kernel.offset());
  std::string stop = "--stop-address=" + std::to_string(kernel.offset() + kernel.bytes());
  std::string file = path;
  char* argv[] = {const_cast<char*>("objdump"),
                  const_cast<char*>("--no-show-raw-insn"),
                  const_cast<char*>("-d"),
                  start.data(),
                  stop.data(),
                  const_cast<char*>("--"),
                  file.data(),
                  nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, "objdump", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string out;
  char buffer[65536];
  for (ssize_t got; error == 0 && (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    out.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  if (error != 0)
    return unsupported("--disasm needs objdump, which is not on PATH; install binutils");
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return unsupported("objdump failed on " + formats::quote(path) +
                       "; cortiq-inspect --verify says whether it is sound");
  const size_t begin = out.find(">:\n");
  const size_t line = begin == std::string::npos ? begin : out.rfind('\n', begin);
  return line == std::string::npos ? out : out.substr(line + 1);
}

const char* form_word(artifact::BufferKind kind) {
  return kind == artifact::BufferKind::Q8Act ? "q8a" : kind == artifact::BufferKind::Q8Bf16Act ? "bf16" : "f32";
}

void print_spec(const artifact::Kernel& k) {
  const formats::Codec* codec = nullptr;
  for (const formats::Codec& row : formats::codec_table())
    if (static_cast<uint16_t>(row.id) == k.codec())
      codec = &row;
  std::printf("; %s: %s, %s layout, rows of %llu, %u tokens x %u rows, %s activations%s%s, %llu bytes\n",
              k.name()->c_str(), codec ? std::string(codec->name).c_str() : "unknown codec",
              k.layout() == 1 ? "r16" : "verbatim", static_cast<unsigned long long>(k.k()), k.tokens(), k.rows(),
              form_word(k.act()), k.bias() ? ", bias" : "", k.residual() ? ", residual" : "",
              static_cast<unsigned long long>(k.bytes()));
}

Status run(const Arguments& arguments) {
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  CORTIQ_ASSIGN_OR_RETURN(const auto artifact, runtime::load_artifact(arguments.file, options));
  const std::string_view wanted = arguments.get("kernel");
  bool found = false;
  const auto targets = shown_targets(*artifact, arguments.get("target"));
  if (!targets.ok())
    return targets.status().with_prefix(formats::quote(arguments.file));
  for (const runtime::ArtifactTarget& target : *targets) {
    CORTIQ_ASSIGN_OR_RETURN(const artifact::Program* program, runtime::read_program(target));
    for (const artifact::Kernel* kernel : *program->kernels()) {
      if (!wanted.empty() && wanted != kernel->name()->string_view())
        continue;
      found = true;
      CORTIQ_ASSIGN_OR_RETURN(const std::string code, disassemble(arguments.file, *kernel));
      print_spec(*kernel);
      std::printf("%s\n", code.c_str());
    }
  }
  return found ? Status()
               : invalid(formats::quote(arguments.file) + " has no kernel " + formats::quote(wanted) +
                         "; cortiq-inspect without --disasm lists them");
}

constexpr Option kOptions[] = {{"--kernel", "NAME", "only this kernel"}, kTarget};

} // namespace

const Mode kDisasmMode = {
    .flag = "--disasm",
    .help = "disassemble the kernels of an artifact",
    .options = kOptions,
    .run = run,
};

} // namespace cortiq::inspect

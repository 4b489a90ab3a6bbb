#include "tools/cortiq-serve/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/cli/device_word.h"
#include "runtime/cli/gpu_room.h"
#include "runtime/cli/memory_size.h"
#include "runtime/cli/tool_main.h"
#include "runtime/cli/whole_number.h"
#include "runtime/cli/word.h"
#include "tools/cortiq-serve/http/health_check.h"

namespace cortiq::serve {
namespace {

using runtime::cli::memory_size;
using runtime::cli::whole_number;

constexpr const char* kProgram = "cortiq-serve";
constexpr uint64_t kMostSeconds = 86400;
constexpr size_t kLongestKey = 1024;

ParseOutcome refuse(const std::string& sentence) {
  return {false, runtime::cli::complain(kProgram, sentence, runtime::cli::kBadInput)};
}

struct RawOptions {
  std::string key_file, kv, memory, cache, signer, sandbox = "off", max_body = "8M", log = "text", fallback;
  std::string pooling = "mean", numa = "auto";
  uint64_t timeout = 600, drain = 30, health = 0;
  runtime::cli::GpuRoomWords gpu_room;
};

void declare(CLI::App& app, ServeOptions& o, RawOptions& raw) {
  app.add_option("FILE", o.file, "an artifact (.cqa) that cortiq-compile made");
  app.add_option("--model-id", o.model_id, "the name that clients use; the artifact's own unless given")
      ->type_name("NAME");

  const char* net = "Network";
  app.add_option("--host", o.http.host, "address to listen on; others than this machine reach 0.0.0.0")
      ->capture_default_str()
      ->group(net);
  app.add_option("--port", o.http.port, "port to listen on; 0: any free one, which is printed")
      ->capture_default_str()
      ->check(whole_number(0, 65535))
      ->group(net);
  app.add_option("--api-key-file", raw.key_file,
                 "file with the key that clients have to send; or the key in the environment as CORTIQ_API_KEY")
      ->type_name("FILE")
      ->check(runtime::cli::some_word)
      ->group(net);
  app.add_option("--max-body", raw.max_body, "largest request")
      ->capture_default_str()
      ->check(memory_size())
      ->group(net);
  app.add_option("--connections", o.http.connections, "connections served at a time")
      ->capture_default_str()
      ->check(whole_number(1, 4096))
      ->group(net);
  app.add_option("--timeout", raw.timeout, "seconds for one answer, waiting included")
      ->capture_default_str()
      ->check(whole_number(1, kMostSeconds))
      ->group(net);
  app.add_option("--drain", raw.drain, "seconds for what runs when the server is told to end")
      ->capture_default_str()
      ->check(whole_number(0, kMostSeconds))
      ->group(net);
  app.add_option("--check-health", raw.health,
                 "do not serve, but ask the server of this machine at that port whether it does: status 0 when it does")
      ->check(whole_number(1, 65535))
      ->type_name("PORT")
      ->group(net);
  app.add_option("--log", raw.log, "a line for each request on stderr: text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}))
      ->group(net);

  const char* work = "Work";
  app.add_option("--sessions", o.scheduler.sessions, "conversations at a time; they are computed as one batch")
      ->capture_default_str()
      ->check(whole_number(1, 1024))
      ->group(work);
  app.add_option("--queue", o.scheduler.queue, "requests that may wait; more are refused with status 429")
      ->capture_default_str()
      ->check(whole_number(0, 1 << 20))
      ->group(work);
  app.add_option("-t,--threads", o.scheduler.threads, "threads; 0: what this machine allows")
      ->capture_default_str()
      ->check(whole_number(0, 1024))
      ->group(work);
  app.add_option("--numa", raw.numa,
                 "several memory nodes: interleave memory and bind workers (auto), or neither (off)")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(work);
  app.add_option("--max-context", o.scheduler.max_context,
                 "tokens a conversation; 0: what the artifact was compiled for")
      ->capture_default_str()
      ->check(whole_number(0))
      ->group(work);
  app.add_option(
         "--cache", raw.cache,
         "bytes for the keys and values of all conversations, and of ended ones (2G); else room for all, but no "
         "more than a quarter of --memory or of the machine's")
      ->check(memory_size())
      ->group(work);
  app.add_option("--pooling", raw.pooling,
                 "embeddings are the mean of a text's last hidden states, or the last one, unless a request says which")
      ->capture_default_str()
      ->check(CLI::IsMember({"mean", "last"}))
      ->group(work);
  app.add_option("--kv", raw.kv, "cache type: f32, f16 or q8")->check(CLI::IsMember({"f32", "f16", "q8"}))->group(work);
  app.add_option("--memory", raw.memory,
                 "bytes for weights, caches and work space (8G); experts beyond it stay on disk")
      ->check(memory_size())
      ->group(work);
  app.add_option("--device", o.device,
                 "GPUs of an artifact compiled with --target vulkan: numbers with commas between them, or none for the "
                 "CPU (default auto: the first that is not a CPU itself)")
      ->check([](const std::string& word) {
        return word == "list" ? "cortiq-run --device list shows them" : runtime::cli::check_device(word);
      })
      ->group(work);
  runtime::cli::add_gpu_room(app, raw.gpu_room, work);
  app.add_option("--fallback", raw.fallback, "cpu: sessions go on there when the GPU fails")
      ->check(CLI::IsMember({"cpu"}))
      ->group(work);

  const char* trust = "Trust";
  app.add_option("--sandbox", raw.sandbox,
                 "give up files, programs and the network once the model is loaded and the address taken: strict (the "
                 "word may be left out), auto: what this kernel offers, off")
      ->expected(0, 1)
      ->default_str("strict")
      ->check(CLI::IsMember({"strict", "auto", "off"}))
      ->type_name("strict|auto|off")
      ->group(trust);
  app.add_flag("--verify", o.verify, "check the hash of every part of the weights first")->group(trust);
  app.add_option("--require-key", raw.signer,
                 "refuse an artifact that is not signed with this ed25519 key: 64 digits, or the file that holds them")
      ->type_name("KEY")
      ->check(runtime::cli::some_word)
      ->group(trust);
}

/// The key of a file's first line.
StatusOr<std::string> read_key(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(path)); // no device, no pipe
  std::string key(file.bytes().begin(),
                  file.bytes().begin() + static_cast<std::ptrdiff_t>(std::min(file.bytes().size(), kLongestKey + 2)));
  key.erase(std::min(key.size(), key.find('\n')));
  if (key.ends_with('\r')) // of an editor that ends lines so; no header can carry it
    key.pop_back();
  if (key.empty() || key.size() > kLongestKey)
    return invalid("the key file " + formats::quote(path) + " has to begin with a line of 1 to " +
                   std::to_string(kLongestKey) + " bytes, the key");
  return key;
}

} // namespace

ParseOutcome parse_serve_options(int argc, char** argv, ServeOptions& out) {
  CLI::App app("Serves a compiled language model: the OpenAI interface over HTTP, and a page to chat with it.",
               kProgram);
  app.set_version_flag("--version", std::string(kProgram) + " " CORTIQ_VERSION);
  app.footer(
      "It listens on this machine only unless --host says otherwise; give it a key then.\n"
      "Exit codes: 0 told to end, 2 bad input or command line or a machine that cannot run it, 1 a bug of ours.");
  RawOptions raw;
  declare(app, out, raw);
  if (const std::optional<int> end = runtime::cli::parse_command_line(app, kProgram, argc, argv))
    return {false, *end};
  if (raw.health != 0) {
    const Status healthy = check_health(static_cast<int>(raw.health));
    return healthy.ok() ? ParseOutcome{false, 0} : refuse(healthy.message());
  }
  if (out.file.empty())
    return refuse("FILE is required; see --help");
  if (const char* key = std::getenv("CORTIQ_API_KEY"))
    out.http.api_key = key;
  if (!raw.key_file.empty()) {
    StatusOr<std::string> key = read_key(raw.key_file);
    if (!key.ok())
      return refuse(key.status().message());
    out.http.api_key = *std::move(key);
  }
  if (const std::string why_not = runtime::cli::some_word(raw.sandbox); !why_not.empty())
    return refuse("--sandbox: " + why_not); // its word may be left out, so that the parser takes an empty one
  out.sandbox = parse_sandbox_mode(raw.sandbox);
  if (!raw.signer.empty()) {
    const auto key = formats::read_public_key(raw.signer, "--require-key");
    if (!key.ok())
      return refuse(key.status().message());
    out.require_key = *key;
  }
  if (out.http.host.empty()) // the library would take it for every address there is
    return refuse("--host names no address; give 127.0.0.1 for this machine alone, or 0.0.0.0 for all");
  out.memory = runtime::cli::parse_memory_size(raw.memory).value_or(0);
  out.gpu_room = raw.gpu_room.room();
  out.scheduler.cache_bytes = runtime::cli::parse_memory_size(raw.cache).value_or(0);
  out.http.max_body = runtime::cli::parse_memory_size(raw.max_body).value_or(0);
  out.http.timeout = std::chrono::seconds(raw.timeout);
  out.http.drain = std::chrono::seconds(raw.drain);
  out.http.json_log = raw.log == "json";
  out.scheduler.cpu_fallback = raw.fallback == "cpu";
  out.scheduler.placement = runtime::placement_of("system", raw.numa);
  out.scheduler.kv = runtime::parse_kv_type(raw.kv);
  out.pooling = runtime::parse_pooling(raw.pooling).value_or(runtime::Pooling::kMean);
  return {};
}

} // namespace cortiq::serve

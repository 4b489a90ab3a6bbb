// cortiq-serve: a compiled model behind the OpenAI interface. Exit codes: 0 told to end, 2 bad input or command line, 1
// a bug of ours.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <malloc.h>
#include <pthread.h>
#include <thread>

#include "formats/quote.h"
#include "formats/standard_output.h"
#include "runtime/cli/gpu_choice.h"
#include "runtime/cli/tool_main.h"
#include "tools/cortiq-serve/http/metrics.h"
#include "tools/cortiq-serve/options.h"

namespace {

using cortiq::Status;

constexpr char kProgram[] = "cortiq-serve";
using namespace cortiq::serve;

sigset_t ending_signals() {
  sigset_t out;
  sigemptyset(&out);
  sigaddset(&out, SIGTERM);
  sigaddset(&out, SIGINT);
  return out;
}

cortiq::StatusOr<ServedModel> load(const ServeOptions& options) {
  ServedModel out;
  cortiq::runtime::LoadOptions how;
  how.memory = options.memory;
  how.verify_weights = options.verify;
  how.require_key = options.require_key;
  how.placement = options.scheduler.placement;
  CORTIQ_ASSIGN_OR_RETURN(out.model, cortiq::runtime::Model::load(options.file, how));
  if (out.model->tokenizer().empty())
    return cortiq::unsupported(cortiq::formats::quote(options.file) +
                               " has no tokenizer, and clients send text: " + out.model->info().text_absent);
  CORTIQ_ASSIGN_OR_RETURN(cortiq::runtime::text::TextModel text,
                          cortiq::runtime::text::open_text_section(out.model->tokenizer()));
  out.text = std::make_shared<const cortiq::runtime::text::TextModel>(std::move(text));
  out.id = !options.model_id.empty()         ? options.model_id
           : !out.model->info().name.empty() ? out.model->info().name
                                             : std::filesystem::path(options.file).stem().string();
  out.created = static_cast<int64_t>(std::time(nullptr));
  const cortiq::runtime::text::Tokenizer& tokenizer = out.text->tokenizer;
  for (uint32_t id = 0; id < tokenizer.vocab_size(); ++id)
    out.longest_token = std::max<uint64_t>(out.longest_token, tokenizer.token_text(id).value_or("").size());
  const uint64_t vocab = out.model->info().vocab, entries = out.model->info().token_count;
  out.constraints = std::make_shared<Constraints>(
      tokenizer, static_cast<uint32_t>(entries == 0 ? vocab : std::min(vocab, entries)), out.text->config.eos_ids);
  return out;
}

Status serve(const ServeOptions& options) {
  // Before any thread: each inherits it, and only the waiting one below hears of an end.
  const sigset_t ending = ending_signals();
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  CORTIQ_ASSIGN_OR_RETURN(ServedModel model, load(options));
  SchedulerOptions how = options.scheduler;
  const auto note = [](const std::string& sentence) {
    std::fprintf(stderr, "cortiq-serve: note: %s\n", sentence.c_str());
  };
  CORTIQ_ASSIGN_OR_RETURN(how.gpu,
                          cortiq::runtime::cli::choose_gpu(
                              *model.model, {options.device, how.cpu_fallback, false, how.kv, options.gpu_room}, note));
  if (how.gpu && how.cache_bytes != 0)
    note("--cache has no effect on a GPU: each of --sessions has a cache of its own there, of --max-context tokens");
  SandboxMode sandbox = options.sandbox;
  std::string missing; // of the sandbox
  CORTIQ_RETURN_IF_ERROR(allow_driver(how.gpu != nullptr, sandbox, missing));
  open_metrics();
  CORTIQ_RETURN_IF_ERROR(leave_files(sandbox, missing));
  CORTIQ_ASSIGN_OR_RETURN(const std::unique_ptr<Scheduler> scheduler,
                          cortiq::runtime::cli::make_or_fall_back(how.gpu, how.cpu_fallback, note, [&] {
                            return Scheduler::create(model.model, model.text, how);
                          }));
  model.max_context = scheduler->max_context();
  model.pooling = options.pooling;
  model.most_choices = options.scheduler.sessions + options.scheduler.queue;
  cortiq::runtime::SessionOptions open;
  open.threads = options.scheduler.threads;
  open.max_context = options.scheduler.max_context;
  open.kv = options.scheduler.kv;
  SideSession side_session(model.model, open, options.scheduler.queue);
  HttpServer server(model, *scheduler, side_session, options.http);
  CORTIQ_ASSIGN_OR_RETURN(const int port, server.bind());
  CORTIQ_RETURN_IF_ERROR(leave_system(sandbox, missing));
  if (!missing.empty())
    std::fprintf(stderr, "cortiq-serve: note: the sandbox is not whole: %s\n", missing.c_str());
  std::printf("cortiq-serve: %s at http://%s:%d\n", cortiq::formats::quote(model.id).c_str(), options.http.host.c_str(),
              port);
  CORTIQ_RETURN_IF_ERROR(cortiq::formats::flush_standard_output());
  std::thread waiting([&] {
    int signal = 0;
    sigwait(&ending, &signal);
    server.stop();
  });
  const Status served = server.serve();
  if (!served.ok())
    pthread_kill(waiting.native_handle(), SIGTERM);
  waiting.join();
  return served;
}

/// What a large request took goes back to the system when it is answered. Left to itself, the C library keeps blocks of
/// up to 32 MiB, in an arena for every few threads.
void give_memory_back() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_ARENA_MAX, 4);
}

} // namespace

int main(int argc, char** argv) {
  give_memory_back();
  return cortiq::runtime::cli::run_tool(kProgram,
                                        "this model; fewer --sessions, a shorter --max-context or --kv q8 take less",
                                        [&]() -> cortiq::StatusOr<int> {
                                          ServeOptions options;
                                          const ParseOutcome outcome = parse_serve_options(argc, argv, options);
                                          if (!outcome.run)
                                            return outcome.exit;
                                          CORTIQ_RETURN_IF_ERROR(serve(options));
                                          return 0;
                                        });
}

#include "tools/cortiq-serve/http/metrics.h"

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace cortiq::serve {
namespace {

/// Where the system says how much memory this process has; stays open: a sandbox lets nothing be opened later.
int memory_file() {
  static const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  return fd;
}

/// Bytes of this process in memory.
double resident_bytes() {
  char text[128] = {};
  unsigned long long pages = 0;
  if (pread(memory_file(), text, sizeof(text) - 1, 0) <= 0 || std::sscanf(text, "%*u %llu", &pages) != 1)
    pages = 0;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

} // namespace

void open_metrics() {
  memory_file();
}

std::string metrics_text(const SchedulerState& state) {
  struct Row {
    const char *name, *type, *help;
    double value;
  };
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  const Row rows[] = {
      {"requests_accepted_total", "counter", "Requests taken on", number(state.accepted)},
      {"requests_refused_total", "counter", "Requests refused because too many waited", number(state.refused)},
      {"requests_finished_total", "counter", "Requests answered in full", number(state.finished)},
      {"requests_cancelled_total", "counter", "Requests whose client left, or whose time was up",
       number(state.cancelled)},
      {"requests_failed_total", "counter", "Requests that failed", number(state.failed)},
      {"requests_waiting", "gauge", "Requests that wait for a session", number(state.waiting)},
      {"requests_running", "gauge", "Requests that are being answered", number(state.running)},
      {"sessions", "gauge", "Sessions there are", number(state.sessions)},
      {"prompt_tokens_total", "counter", "Tokens of prompts", number(state.prompt_tokens)},
      {"prompt_tokens_kept_total", "counter", "Of those, tokens that the cache held already",
       number(state.kept_tokens)},
      {"generated_tokens_total", "counter", "Tokens generated", number(state.generated_tokens)},
      {"first_token_seconds_total", "counter", "Time from arrival to the first token, summed",
       state.first_token_seconds},
      {"gpu_lost", "gauge", "1 when the GPU failed for good", state.gpu_lost ? 1.0 : 0.0},
      {"steps_total", "counter", "Steps of the model", number(state.batch.steps)},
      {"step_tokens_total", "counter", "Tokens of all steps", number(state.batch.step_tokens)},
      {"step_answers_total", "counter", "Of those, tokens of answers: by steps, the size of the batch",
       number(state.batch.step_answers)},
      {"preempted_total", "counter", "Times that a request gave its pages of the cache to older ones",
       number(state.batch.preempted)},
      {"cache_pages", "gauge", "Pages of the cache", number(state.cache.pages)},
      {"cache_page_bytes", "gauge", "Bytes of a page", number(state.cache.page_bytes)},
      {"cache_pages_used", "gauge", "Pages that requests have", number(state.cache.used)},
      {"cache_pages_kept", "gauge", "Pages of ended requests that are kept for prompts that begin alike",
       number(state.cache.kept)},
      {"resident_bytes", "gauge", "Memory of the process", resident_bytes()},
  };
  std::string out;
  char line[512];
  for (const Row& row : rows) {
    std::snprintf(line, sizeof line, "# HELP cortiq_%s %s.\n# TYPE cortiq_%s %s\ncortiq_%s %.17g\n", row.name, row.help,
                  row.name, row.type, row.name, row.value);
    out += line;
  }
  return out;
}

} // namespace cortiq::serve

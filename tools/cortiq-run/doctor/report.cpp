#include "tools/cortiq-run/doctor/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "formats/quote.h"
#include "tools/cortiq-run/doctor/advice.h"

namespace cortiq::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1 << 30;

class Text {
public:
  explicit Text(bool colours) : colours_(colours) {}

  [[gnu::format(printf, 3, 4)]] void line(const char* what, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char* said = nullptr;
    const int length = vasprintf(&said, format, arguments);
    va_end(arguments);
    char head[32];
    std::snprintf(head, sizeof(head), "%-12s ", what);
    out_ += (colours_ ? "\033[1m" + std::string(head) + "\033[0m" : head) + (length < 0 ? "" : said) + "\n";
    std::free(said);
  }
  std::string good(const std::string& text) const { return colours_ ? "\033[32m" + text + "\033[0m" : text; }
  std::string bad(const std::string& text) const { return colours_ ? "\033[31m" + text + "\033[0m" : text; }
  std::string take() { return std::move(out_); }

private:
  bool colours_;
  std::string out_;
};

std::string words(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& word : list)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

void print_processor(const Findings& f, Text& text) {
  text.line("cpu", "%s", f.cpu.c_str());
  text.line("features", "%s", words(f.features).c_str());
  if (!f.withheld.empty())
    text.line("withheld", "%s", text.bad(words(f.withheld) + ": the operating system has not enabled them").c_str());
  for (const FoundTarget& target : f.targets)
    text.line("target", "%-11s %s", target.name.c_str(),
              target.why_not.empty() ? text.good("usable").c_str() : ("no: " + target.why_not).c_str());
  if (f.best())
    text.line("native", "%s is what cortiq-compile takes for this machine", text.good(f.best()->name).c_str());
  else
    text.line("native", "%s", text.bad("no target runs here").c_str());
  const std::string quota = f.limits.quota > 0
                                ? "cgroup quota of " + std::to_string(f.limits.quota).substr(0, 4) + " CPUs"
                                : "no cgroup quota";
  text.line("threads", "%u by default (%s): %u of %u CPUs in the affinity mask, %u cores, %s",
            runtime::default_threads(f.limits), runtime::default_threads_reason(f.limits).c_str(), f.limits.affinity,
            std::max(f.online, f.limits.affinity), f.limits.cores, quota.c_str());
  if (!f.governor.empty())
    text.line("clock", "%s", f.governor.c_str());
}

void print_memory(const Findings& f, Text& text) {
  char limit[64] = "no cgroup limit";
  if (f.limits.memory_limit != 0)
    std::snprintf(limit, sizeof(limit), "cgroup limit of %.2f GiB", static_cast<double>(f.limits.memory_limit) / kGiB);
  text.line("memory", "%.2f GiB in the machine, %.2f GiB of them free for use, %s",
            static_cast<double>(f.limits.host_memory) / kGiB, static_cast<double>(f.available) / kGiB, limit);
  text.line("nodes", "%zu of memory%s", f.nodes,
            f.nodes < 2     ? ""
            : f.interleaved ? ": memory is interleaved, workers are bound; --numa off leaves both to the system"
                            : ": workers are bound, --numa off leaves them to the system; only one node has memory for "
                              "this process");
  text.line("read speed", "%.1f GB/s with %u threads", f.read_gbps, f.read_threads);
  if (f.large_pages.empty())
    text.line("large pages", "the system has none");
  else
    text.line("large pages", "%llu KiB, %s", static_cast<unsigned long long>(f.large_page_bytes >> 10),
              f.large_pages == "never" ? text.bad("switched off").c_str()
                                       : ("for programs that ask (" + f.large_pages + ")").c_str());
}

void print_gpus(const Findings& f, Text& text) {
  if (!f.no_gpus.empty())
    text.line("gpu", "none: %s", f.no_gpus.c_str());
  else if (f.gpus.empty())
    text.line("gpu", "none: Vulkan lists no device");
  for (size_t i = 0; i < f.gpus.size(); ++i) {
    const runtime::GpuInfo& gpu = f.gpus[i];
    const std::string state = !gpu.unusable.empty() ? "; " + text.bad("cannot be used: " + gpu.unusable)
                              : gpu.kind == "cpu"   ? "; it is the CPU: taken only when asked for"
                                                    : "; " + text.good("usable");
    text.line("gpu", "%zu: %s, %s, %llu MiB, %s%s", i, formats::printable(gpu.name).c_str(), gpu.kind.c_str(),
              static_cast<unsigned long long>(gpu.memory >> 20), formats::printable(gpu.driver).c_str(), state.c_str());
  }
}

void print_file(const Findings& f, Text& text) {
  if (!f.file)
    return;
  const FoundFile& file = *f.file;
  const std::string name = formats::quote(file.path);
  if (!file.status.ok()) {
    text.line("file", "%s", text.bad(name + " does not run here").c_str());
    return;
  }
  if (!file.model) {
    text.line("file", "%s is a model; it has to be compiled", name.c_str());
    return;
  }
  const runtime::ModelInfo& model = *file.model;
  const std::string why = model.target_reason.empty() ? "" : " (" + model.target_reason + ")";
  text.line("file", "%s %s: %s for %s%s, %.1f MB of weights%s", name.c_str(), text.good("runs here").c_str(),
            formats::printable(model.architecture).c_str(), model.target.c_str(), why.c_str(),
            static_cast<double>(model.weight_bytes) * 1e-6, file.verified ? ", every hash right" : "");
  if (const double ceiling = decode_ceiling(f); ceiling > 0)
    text.line("ceiling", "%.0f tokens/s, where a token reads every weight once at the read speed above", ceiling);
}

Json gpu_json(const runtime::GpuInfo& gpu) {
  return {{"name", gpu.name},
          {"kind", gpu.kind},
          {"memory", gpu.memory},
          {"driver", gpu.driver},
          {"usable", gpu.unusable.empty()},
          {"why_not", gpu.unusable}};
}

Json file_json(const Findings& f) {
  const FoundFile& file = *f.file;
  Json out = {{"path", file.path}, {"artifact", file.kind == formats::FileKind::kArtifact}};
  out["runs"] = file.model.has_value();
  out["why_not"] = file.model ? "" : file.status.ok() ? "it is a model; it has to be compiled" : file.status.message();
  if (!file.model)
    return out;
  const runtime::ModelInfo& model = *file.model;
  out["architecture"] = model.architecture;
  out["target"] = model.target;
  out["target_reason"] = model.target_reason;
  out["targets"] = model.targets;
  out["exact"] = model.exact;
  out["gpu"] = file.for_gpu;
  out["weight_bytes"] = model.weight_bytes;
  out["verified"] = file.verified;
  out["decode_ceiling"] = decode_ceiling(f);
  return out;
}

} // namespace

std::string report_text(const Findings& f, bool colours) {
  Text text(colours);
  print_processor(f, text);
  print_memory(f, text);
  print_gpus(f, text);
  text.line("compiler", "%s", f.compiler.empty() ? "not found: only compiled artifacts can run" : f.compiler.c_str());
  print_file(f, text);
  for (const std::string& step : advise(f))
    text.line("next step", "%s", step.c_str());
  return text.take();
}

std::string report_json(const Findings& f) {
  Json out;
  out["cpu"] = {{"name", f.cpu}, {"features", f.features}, {"withheld", f.withheld}};
  out["targets"] = Json::array();
  for (const FoundTarget& target : f.targets)
    out["targets"].push_back({{"name", target.name}, {"usable", target.why_not.empty()}, {"why_not", target.why_not}});
  out["native"] = f.best() ? Json(f.best()->name) : Json();
  out["threads"] = {{"default", runtime::default_threads(f.limits)},
                    {"why", runtime::default_threads_reason(f.limits)},
                    {"affinity", f.limits.affinity},
                    {"online", f.online},
                    {"cores", f.limits.cores},
                    {"quota", f.limits.quota > 0 ? Json(f.limits.quota) : Json()},
                    {"governor", f.governor}};
  out["memory"] = {{"bytes", f.limits.host_memory},
                   {"available", f.available},
                   {"limit", f.limits.memory_limit != 0 ? Json(f.limits.memory_limit) : Json()},
                   {"nodes", f.nodes},
                   {"read_gbps", f.read_gbps},
                   {"read_threads", f.read_threads}};
  out["large_pages"] = {{"mode", f.large_pages}, {"bytes", f.large_page_bytes}};
  out["gpus"] = Json::array();
  for (const runtime::GpuInfo& gpu : f.gpus)
    out["gpus"].push_back(gpu_json(gpu));
  out["no_gpus"] = f.no_gpus;
  out["compiler"] = f.compiler;
  if (f.file)
    out["file"] = file_json(f);
  out["next_steps"] = advise(f);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace cortiq::tools

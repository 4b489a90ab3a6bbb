// cortiq-convert: GGUF files and checkpoint folders to CMF. Exit codes: 0 done, 2 bad input or bad command line, 1 a
// bug of ours.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "formats/encode/encoder.h"
#include "formats/part_files.h"
#include "formats/quote.h"
#include "runtime/cli/tool_main.h"
#include "tools/cortiq-convert/convert.h"
#include "tools/cortiq-convert/progress_bar.h"
#include "tools/cortiq-convert/shards.h"

namespace {

using cortiq::convert::ConvertOptions;
using cortiq::convert::ConvertSummary;
using cortiq::runtime::cli::complain;

constexpr char kProgram[] = "cortiq-convert";

constexpr unsigned kMostThreads = 1024;

std::string codec_list() {
  std::string list;
  for (const cortiq::formats::Encoder* encoder : cortiq::formats::encoder_table())
    list += " " + std::string(cortiq::formats::codec_info(encoder->codec).name);
  return list;
}

void print_json(const ConvertOptions& options, const ConvertSummary& summary) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const auto& t : summary.tensors)
    tensors.push_back(
        {{"name", t.name}, {"from", t.from}, {"to", t.to}, {"kept", t.kept}, {"relative_error", t.relative_error}});
  const nlohmann::json out = {{"input", options.input},          {"output", options.output},
                              {"source_format", summary.format}, {"bytes_in", summary.bytes_in},
                              {"bytes_out", summary.bytes_out},  {"shards", summary.shards},
                              {"tensors", std::move(tensors)},   {"warnings", summary.warnings}};
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_text(const ConvertOptions& options, const ConvertSummary& summary) {
  struct Group {
    int count = 0;
    bool kept = true;
    double worst = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const auto& t : summary.tensors) {
    Group& group = groups[{t.from, t.to}];
    ++group.count;
    group.kept = group.kept && t.kept;
    group.worst = std::max(group.worst, t.relative_error);
  }
  for (const auto& [codecs, group] : groups) {
    std::printf("%5d  %-10s -> %-10s  ", group.count, codecs.first.c_str(), codecs.second.c_str());
    if (group.kept)
      std::printf("same values\n");
    else
      std::printf("relative error up to %.4f\n", group.worst);
  }
  const std::string files = summary.shards == 0 ? "" : " in " + std::to_string(summary.shards) + " files";
  std::printf("%s%s: %.1f MiB from %.1f MiB, verified\n", cortiq::formats::quote(options.output).c_str(), files.c_str(),
              static_cast<double>(summary.bytes_out) / 1048576, static_cast<double>(summary.bytes_in) / 1048576);
}

cortiq::StatusOr<int> run(int argc, char** argv) {
  CLI::App app("Converts a model to CMF: a GGUF file, or a checkpoint folder with config.json, tokenizer.json and "
               "*.safetensors.\nWeights that CMF can hold as they are keep their values bit for bit; others change "
               "only on request.",
               kProgram);
  app.set_version_flag("--version", "cortiq-convert " CORTIQ_VERSION " (writes CMF 2)");
  app.footer("Codecs:" + codec_list() +
             ".\nA matrix whose width does not suit its codec becomes q8_2f. Patterns match names as CMF has them "
             "('*.mlp.down_proj.weight'); of several that match, the last counts.");
  ConvertOptions options;
  std::string quant;
  std::string shard_size;
  std::vector<std::string> tensor_quants;
  options.threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  bool json = false;
  app.add_option("IN", options.input, "GGUF file (the first part of a split) or checkpoint folder")->required();
  app.add_option("-o,--output", options.output, "CMF file to write")->required()->type_name("OUT.cmf");
  app.add_option("--quant", quant, "what matrices of plain numbers, and those that CMF cannot hold, become")
      ->type_name("CODEC");
  app.add_option("--tensor-quant", tensor_quants, "what the matrices become whose names match; may be repeated")
      ->type_name("PATTERN=CODEC")
      ->allow_extra_args(false);
  app.add_option("--shard-size", shard_size, "divide the result into OUT-00001-of-0000N.cmf of about this size (4G)")
      ->type_name("SIZE");
  app.add_option("-j,--threads", options.threads, "threads (default: all cores)")->check(CLI::Range(1u, kMostThreads));
  app.add_flag("--json", json, "print what was done as JSON");
  if (const std::optional<int> end = cortiq::runtime::cli::parse_command_line(app, kProgram, argc, argv))
    return *end;
  if (!quant.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(options.quant.quant, cortiq::convert::parse_quant(quant));
  }
  if (!shard_size.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(options.shard_size, cortiq::convert::parse_shard_size(shard_size));
  }
  for (const std::string& text : tensor_quants) {
    CORTIQ_ASSIGN_OR_RETURN(auto parsed, cortiq::convert::parse_tensor_quant(text));
    options.quant.tensor_quants.push_back(std::move(parsed));
  }
  const auto convert = [&] {
    cortiq::convert::ProgressBar bar; // gone before anything else is printed
    options.progress = [&](const char* what, double done) { bar.update(what, done); };
    return cortiq::convert::convert(options);
  };
  CORTIQ_ASSIGN_OR_RETURN(const ConvertSummary summary, convert());
  for (const std::string& warning : summary.warnings)
    complain(kProgram, "note: " + warning, 0);
  if (json)
    print_json(options, summary);
  else
    print_text(options, summary);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  cortiq::formats::prepare_to_write();
  return cortiq::runtime::cli::run_tool(kProgram, "this model; fewer --threads take less",
                                        [&] { return run(argc, argv); });
}

#include "tools/cortiq-bench/static_bench.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/layout/layout.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/cli/compiler_process.h"
#include "tools/cortiq-bench/random_weights.h"
#include "tools/cortiq-bench/static/mca.h"
#include "tools/cortiq-bench/temporary_folder.h"

namespace cortiq::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWeights = 32; // that counts are given for

struct Cycles {
  std::string_view processor;
  double for_32_weights;
};

struct Row {
  ListedKernel kernel;
  KernelCost cost;
  double bytes_per_weight = 0;
  std::vector<Cycles> cycles;
};

StatusOr<std::vector<std::string>> split(const std::string& text, const char* option) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, comma - at));
    if (out.back().empty())
      return invalid(std::string(option) + " has an empty name in " + formats::quote(text));
    at = comma + 1;
  }
  return out;
}

/// Compiles one codec or model for one target and reads its listing.
StatusOr<std::vector<ListedKernel>> list_kernels(const StaticBenchOptions& options, const std::string& what,
                                                 const std::string& target, const TemporaryFolder& folder) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string compiler, runtime::cli::find_compiler());
  const std::string listing = folder.path() + "/listing.s";
  std::vector<std::string> arguments;
  if (formats::find_cli_codec(what)) {
    const std::string weights = folder.path() + "/weights";
    const std::string shape = options.shape.empty() ? kStaticShape : options.shape;
    CORTIQ_RETURN_IF_ERROR(write_random_weights("--static", what, shape, weights));
    // Every kernel that the codec has, also where another path would be chosen.
    arguments = {"--gemv", what, "--shape", shape, "--weights", weights, "--path=materialised"};
  } else {
    arguments = {what};
  }
  if (!options.numerics.empty())
    arguments.push_back("--numerics=" + options.numerics);
  if (!target.empty())
    arguments.push_back("--target=" + target);
  arguments.insert(arguments.end(), {"--emit=asm", "-o", listing});
  CORTIQ_RETURN_IF_ERROR(runtime::cli::run_compiler(compiler, arguments));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile text, formats::MappedFile::open(listing));
  const auto bytes = text.bytes();
  return parse_listing({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

StatusOr<Row> measure(ListedKernel kernel, const std::vector<McaProcessor>& chosen, const std::string& mca,
                      const TemporaryFolder& folder) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes,
                          formats::packed_bytes(*kernel.codec, kernel.layout, kernel.rows, kernel.columns));
  Row row;
  row.cost = count_kernel(kernel);
  row.bytes_per_weight = static_cast<double>(bytes) / static_cast<double>(kernel.rows * kernel.columns);
  if (!mca.empty())
    for (const McaProcessor& processor : chosen.empty() ? processors_of(kernel.set) : chosen) {
      CORTIQ_RETURN_IF_ERROR(check_processor(processor, kernel.set));
      const auto each = estimate_cycles(mca, processor, row.cost.strands, folder.path());
      if (!each.ok())
        return each.status().with_prefix(kernel.name + " on " + std::string(processor.name));
      double sum = 0;
      for (size_t i = 0; i < each->size(); ++i)
        sum += (*each)[i] * row.cost.strands[i].iterations;
      row.cycles.push_back({processor.name, sum / row.cost.products});
    }
  row.kernel = std::move(kernel);
  return row;
}

void print_table(const std::vector<Row>& rows) {
  std::string set;
  for (const Row& row : rows) {
    if (row.kernel.set != set) {
      set = row.kernel.set;
      std::printf("%-56s%13s%7s%8s%14s", set.c_str(), "instructions", "loads", "all", "bytes/weight");
      for (const Cycles& cycles : row.cycles)
        std::printf("%16s", std::string(cycles.processor).c_str());
      std::printf("\n");
    }
    std::printf("%-56s%13.2f%7.2f%8.2f%14.4f", row.kernel.name.c_str(), row.cost.instructions, row.cost.loads,
                row.cost.all, row.bytes_per_weight);
    for (const Cycles& cycles : row.cycles)
      std::printf("%16.2f", cycles.for_32_weights);
    std::printf("\n");
  }
}

Json to_json(const Row& row) {
  Json out = {{"name", row.kernel.name},
              {"codec", row.kernel.codec->name},
              {"instruction_set", row.kernel.set},
              {"columns", row.kernel.columns},
              {"tokens", row.kernel.tokens},
              {"rows", row.kernel.rows},
              {"bytes_per_weight", row.bytes_per_weight},
              {"instructions", row.cost.instructions},
              {"loads", row.cost.loads},
              {"all_instructions", row.cost.all},
              {"cycles", Json::object()}};
  for (const Cycles& cycles : row.cycles)
    out["cycles"][std::string(cycles.processor)] = cycles.for_32_weights;
  return out;
}

} // namespace

Status bench_static(const StaticBenchOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<std::string> whats, split(options.what, "--static"));
  std::vector<std::string> targets = {""};
  if (!options.targets.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(targets, split(options.targets, "--target"));
  }
  std::vector<McaProcessor> chosen;
  if (!options.processors.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<std::string> names, split(options.processors, "--cpu"));
    for (const std::string& name : names) {
      CORTIQ_ASSIGN_OR_RETURN(const McaProcessor processor, find_processor(name));
      chosen.push_back(processor);
    }
  }
  for (const std::string& what : whats)
    if (!formats::find_cli_codec(what) && !std::filesystem::exists(what))
      return invalid("--static takes weight codecs (cortiq-inspect --codecs lists them) or a model file, and " +
                     formats::quote(what) + " is neither");
  const StatusOr<std::string> mca = find_mca();
  CORTIQ_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  std::vector<Row> rows;
  for (const std::string& target : targets) {
    std::set<std::string> seen; // models share kernels
    for (const std::string& what : whats) {
      CORTIQ_ASSIGN_OR_RETURN(std::vector<ListedKernel> kernels, list_kernels(options, what, target, folder));
      for (ListedKernel& kernel : kernels) {
        if (!seen.insert(kernel.name).second)
          continue;
        CORTIQ_ASSIGN_OR_RETURN(Row row, measure(std::move(kernel), chosen, mca.ok() ? *mca : "", folder));
        rows.push_back(std::move(row));
      }
    }
  }
  if (options.json) {
    Json out = {{"weights", kWeights}, {"kernels", Json::array()}};
    if (!mca.ok())
      out["why_no_cycles"] = mca.status().message();
    for (const Row& row : rows)
      out["kernels"].push_back(to_json(row));
    std::printf("%s\n", out.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return {};
  }
  print_table(rows);
  std::printf(
      "\nFor 32 weights of one token: instructions and loads of the loops over a row's weights, all instructions of a "
      "group of rows%s.\n",
      mca.ok() ? ", cycles of the loops as llvm-mca estimates them with all data in the first cache" : "");
  if (!mca.ok())
    std::printf("%s\n", mca.status().message().c_str());
  return {};
}

} // namespace cortiq::bench

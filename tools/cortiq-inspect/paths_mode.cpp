// --paths: how an artifact makes each matrix's products with many tokens, what the paths were thought to cost, and why.

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/codec/codec.h"
#include "formats/quote.h"
#include "runtime/loader/load.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWords[] = {"fused", "materialised", "tiles", "bf16"};

std::string codec_name(uint16_t id) {
  for (const formats::Codec& codec : formats::codec_table())
    if (static_cast<uint16_t>(codec.id) == id)
      return std::string(codec.name);
  return "codec " + std::to_string(id);
}

StatusOr<Json> matrix(const artifact::PathChoice& choice, const artifact::Weight& weight) {
  if (choice.path() >= std::size(kWords))
    return unsupported("it takes a path that this version does not know");
  return Json{{"name", weight.name()->str()},
              {"codec", codec_name(weight.codec())},
              {"shape", {weight.rows(), weight.cols()}},
              {"arm", choice.act() == artifact::BufferKind::F32 ? "exact" : "fast"},
              {"path", kWords[choice.path()]},
              {"from_tokens", choice.from_tokens()},
              {"fused_ps", static_cast<double>(choice.fused()) / 1000},
              {"materialised_ps", static_cast<double>(choice.materialised()) / 1000},
              {"why", choice.why()->str()}};
}

void print_matrix(const Json& m) {
  auto cost = [&](const char* key) {
    char text[32] = "?";
    if (m[key].get<double>() > 0)
      std::snprintf(text, sizeof(text), "%.1f", m[key].get<double>());
    return std::string(text);
  };
  const uint32_t from = m["from_tokens"].get<uint32_t>();
  const std::string quoted = formats::quote(m["name"].get<std::string>());
  std::printf("%-40s %-9s %-14s %-5s %-12s %-6s %6s %6s  %s\n", quoted.substr(1, quoted.size() - 2).c_str(),
              m["codec"].get<std::string>().c_str(), m["shape"].dump().c_str(), m["arm"].get<std::string>().c_str(),
              m["path"].get<std::string>().c_str(), from ? std::to_string(from).c_str() : "-", cost("fused_ps").c_str(),
              cost("materialised_ps").c_str(), m["why"].get<std::string>().c_str());
}

Status run(const Arguments& arguments) {
  if (!is_artifact(arguments.file))
    return invalid(formats::quote(arguments.file) +
                   " is no artifact: paths are chosen by cortiq-compile MODEL -o OUT.cqa");
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  CORTIQ_ASSIGN_OR_RETURN(const auto artifact, runtime::load_artifact(arguments.file, options));
  const auto& weights = *artifact->manifest->weights();
  std::map<uint32_t, Json> by_weight; // in the order of the weight table
  if (const auto* choices = artifact->program_table->paths())
    for (const artifact::PathChoice* choice : *choices)
      for (const uint32_t number : *choice->weights()) {
        if (number >= weights.size())
          return invalid(formats::quote(arguments.file) + " names a path for a weight that it does not have");
        CORTIQ_ASSIGN_OR_RETURN(by_weight[number], matrix(*choice, *weights.Get(number)));
      }
  if (arguments.has("json")) {
    Json all = Json::array();
    for (auto& [number, row] : by_weight)
      all.push_back(std::move(row));
    std::printf("%s\n", all.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
    return {};
  }
  std::printf("%-40s %-9s %-14s %-5s %-12s %-6s %6s %6s  %s\n", "matrix", "codec", "shape", "arm", "path", "from",
              "fused", "mater.", "why");
  for (const auto& [number, row] : by_weight)
    print_matrix(row);
  std::printf("\nfrom: tokens of a call from which on the path serves; fewer are fused\nbf16: prompts are multiplied "
              "in 16 bits, "
              "however few tokens they have; what is generated is fused\nfused, mater.: picoseconds of one "
              "core a weight and token, many tokens at once, as measured for the target (? not measured)\n");
  return {};
}

constexpr Option kOptions[] = {kJson};

} // namespace

const Mode kPathsMode = {.flag = "--paths",
                         .help = "how an artifact multiplies each matrix with many tokens, and why",
                         .options = kOptions,
                         .run = run};

} // namespace cortiq::inspect

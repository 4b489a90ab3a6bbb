#include "tools/cortiq-inspect/artifact_mode.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "formats/codec/codec.h"
#include "formats/file_kind.h"
#include "formats/quote.h"
#include "runtime/loader/load.h"
#include "runtime/loader/signature.h"
#include "tools/cortiq-inspect/runnable.h"

namespace cortiq::inspect {
namespace {

using Json = nlohmann::ordered_json;
using runtime::ArtifactTarget;
using runtime::LoadedArtifact;

constexpr const char* kSectionNames[] = {"code", "manifest", "program", "tokenizer", "provenance", "weights"};

std::string codec_name(uint16_t id) {
  for (const formats::Codec& codec : formats::codec_table())
    if (static_cast<uint16_t>(codec.id) == id)
      return std::string(codec.name);
  return "codec " + std::to_string(id);
}

std::string layout_name(uint8_t layout) {
  return layout == 0 ? "verbatim" : layout == 1 ? "r16" : "layout " + std::to_string(layout);
}

std::string text(const flatbuffers::String* string) {
  return string ? string->str() : std::string();
}

std::string hex(const flatbuffers::Vector<uint8_t>* bytes) {
  std::string out;
  for (size_t i = 0; bytes && i < bytes->size(); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", bytes->Get(i));
    out += digits;
  }
  return out;
}

Json manifest_json(const artifact::Manifest& m) {
  Json features = Json::array();
  for (const flatbuffers::String* feature : *m.features())
    features.push_back(feature->str());
  return {{"architecture", text(m.architecture())},
          {"model", text(m.model_name())},
          {"source", text(m.source_name())},
          {"source_hash", hex(m.source_hash())},
          {"compiler", text(m.compiler_version())},
          {"options", text(m.options())},
          {"target", text(m.target())},
          {"features", std::move(features)},
          {"numerics", m.numerics() == artifact::Numerics::Exact ? "exact" : "fast"},
          {"kv", m.kv_f16() ? "f16" : "f32"},
          {"hidden", m.hidden()},
          {"layers", m.layers()},
          {"vocab", m.vocab()},
          {"token_count", m.token_count()},
          {"text_absent", text(m.text_absent())},
          {"max_context", m.max_context()},
          {"trained_context", m.trained_context()},
          {"max_batch", m.max_batch()},
          {"weights_embedded", m.weights_embedded()},
          {"weights_root", hex(m.weights_root())}};
}

Json sections_json(const LoadedArtifact& artifact) {
  Json out;
  for (size_t i = 0; i < std::size(kSectionNames); ++i)
    out[kSectionNames[i]] = {{"offset", artifact.file.header().sections[i].offset},
                             {"bytes", artifact.file.header().sections[i].bytes}};
  return out;
}

Json weights_json(const artifact::Manifest& manifest) {
  Json out = Json::array();
  for (const artifact::Weight* w : *manifest.weights())
    out.push_back({{"name", w->name()->str()},
                   {"codec", codec_name(w->codec())},
                   {"layout", layout_name(w->layout())},
                   {"shape", {w->rows(), w->cols()}},
                   {"offset", w->offset()},
                   {"bytes", w->bytes()}});
  return out;
}

Json kernels_json(const std::vector<ArtifactTarget>& targets) {
  Json out = Json::array();
  for (const ArtifactTarget& target : targets)
    if (const auto program = runtime::read_program(target); program.ok())
      for (const artifact::Kernel* k : *(*program)->kernels())
        out.push_back(
            {{"name", k->name()->str()}, {"target", target.name}, {"offset", k->offset()}, {"bytes", k->bytes()}});
  return out;
}

/// What each target brings: places of code that an earlier one has already are told apart, for they are stored once.
StatusOr<Json> targets_json(const LoadedArtifact& artifact) {
  Json out = Json::array();
  std::set<uint64_t> places;
  const runtime::TargetMachine machine = runtime::this_machine();
  const auto chosen = runtime::choose_target(artifact.targets, "", machine);
  for (size_t i = 0; i < artifact.targets.size(); ++i) {
    const ArtifactTarget& target = artifact.targets[i];
    CORTIQ_ASSIGN_OR_RETURN(const artifact::Program* program, runtime::read_program(target));
    uint64_t code = 0, shared = 0;
    for (const artifact::Kernel* kernel : *program->kernels())
      (places.insert(kernel->offset()).second ? code : shared) += kernel->bytes();
    const Status runs = runtime::can_run(target, machine);
    out.push_back({{"name", target.name},
                   {"features", target.features},
                   {"runnable", runs.ok()},
                   {"because", runs.message()},
                   {"taken", chosen.ok() && chosen->index == i},
                   {"kernels", program->kernels()->size()},
                   {"code_bytes", code},
                   {"shared_code_bytes", shared},
                   {"program_bytes", target.program.size()},
                   {"stages", program->stages()->size()},
                   {"arena_bytes_per_token", program->arena_bytes_per_token()}});
  }
  return out;
}

std::string dump(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// One line's worth of text out of a file.
std::string plain(const Json& value) {
  if (!value.is_string())
    return dump(value, -1);
  const std::string quoted = formats::quote(value.get_ref<const std::string&>());
  return quoted.substr(1, quoted.size() - 2);
}

void print_target(const Json& target) {
  auto number = [&](const char* key) { return target[key].get<unsigned long long>(); };
  const std::string runs = !target["runnable"].get<bool>() ? "not here: " + plain(target["because"])
                           : target["taken"].get<bool>()   ? "taken here"
                                                           : "runs here";
  std::printf("  %-16s %s\n", plain(target["name"]).c_str(), runs.c_str());
  std::printf("  %-16s %llu kernels of %llu bytes, %llu more in common with those above; program of %llu bytes, %llu "
              "stages, %llu bytes of arena a token\n",
              "", number("kernels"), number("code_bytes"), number("shared_code_bytes"), number("program_bytes"),
              number("stages"), number("arena_bytes_per_token"));
  std::string features;
  for (const Json& feature : target["features"])
    features += " " + plain(feature);
  std::printf("  %-16s needs%s\n", "", features.empty() ? " nothing" : features.c_str());
}

void print_text(const std::string& path, const Json& all, const std::vector<Capability>& runnable) {
  std::printf("%s: artifact schema %u, %llu bytes\n\nrunnable\n", formats::quote(path).c_str(),
              formats::kArtifactSchemaVersion, all["bytes"].get<unsigned long long>());
  for (const Capability& capability : runnable)
    std::printf("  %-8s %s\n", capability.name, describe(capability).c_str());
  std::printf("\nmanifest\n");
  for (const auto& [key, value] : all["manifest"].items())
    std::printf("  %-16s %s\n", key.c_str(), plain(value).c_str());
  std::printf("\nsections\n");
  for (const auto& [key, value] : all["sections"].items())
    std::printf("  %-16s %12llu bytes at %llu\n", key.c_str(), value["bytes"].get<unsigned long long>(),
                value["offset"].get<unsigned long long>());
  std::printf("\ntargets\n");
  for (const Json& target : all["targets"])
    print_target(target);
  std::printf("\nkernels\n");
  for (const Json& kernel : all["kernels"])
    std::printf("  %-56s %8llu bytes at %llu\n", plain(kernel["name"]).c_str(),
                kernel["bytes"].get<unsigned long long>(), kernel["offset"].get<unsigned long long>());
  std::printf("\nweights\n");
  for (const Json& weight : all["weights"])
    std::printf("  %-40s %-9s %-9s %-16s %12llu bytes\n", plain(weight["name"]).c_str(), plain(weight["codec"]).c_str(),
                plain(weight["layout"]).c_str(), plain(weight["shape"]).c_str(),
                weight["bytes"].get<unsigned long long>());
}

} // namespace

bool is_artifact(const std::string& path) {
  const auto kind = formats::detect_file_kind(path);
  return kind.ok() && *kind == formats::FileKind::kArtifact;
}

StatusOr<std::vector<ArtifactTarget>> shown_targets(const LoadedArtifact& artifact, std::string_view target) {
  std::vector<ArtifactTarget> out;
  for (const ArtifactTarget& held : artifact.targets)
    if (target.empty() || held.name == target)
      out.push_back(held);
  if (out.empty())
    return invalid("it holds code for " + runtime::name_targets(artifact.targets) + ", not for " +
                   formats::quote(target));
  return out;
}

Status list_artifact(const std::string& path, std::string_view target, bool json) {
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  CORTIQ_ASSIGN_OR_RETURN(const auto artifact, runtime::load_artifact(path, options));
  const auto shown = shown_targets(*artifact, target);
  if (!shown.ok())
    return shown.status().with_prefix(formats::quote(path));
  StatusOr<Json> targets = targets_json(*artifact);
  if (!targets.ok())
    return targets.status().with_prefix(formats::quote(path));
  const std::vector<Capability> runnable = capabilities_of_artifact(path);
  const Json all = {{"format", "artifact"},
                    {"runnable", capabilities_json(runnable)},
                    {"schema", artifact->file.header().schema_version},
                    {"bytes", artifact->file.header().file_bytes},
                    {"manifest", manifest_json(*artifact->manifest)},
                    {"sections", sections_json(*artifact)},
                    {"targets", *std::move(targets)},
                    {"stages", artifact->program_table->stages()->size()},
                    {"arena_bytes_per_token", artifact->program_table->arena_bytes_per_token()},
                    {"kernels", kernels_json(*shown)},
                    {"weights", weights_json(*artifact->manifest)}};
  if (json)
    std::printf("%s\n", dump(all, 1).c_str());
  else
    print_text(path, all, runnable);
  return {};
}

Status verify_artifact(const std::string& path, const std::optional<formats::SignerKey>& required) {
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  CORTIQ_ASSIGN_OR_RETURN(const auto tables, runtime::load_artifact(path, options));
  const size_t weights = tables->manifest->weights()->size();
  StatusOr<std::string> signer = runtime::describe_signature(tables->file, path);
  if (!signer.ok())
    return signer.status().with_prefix(formats::quote(path));
  options.verify_weights = true;
  options.require_key = required;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.resolve = tables->manifest->weights_embedded(); // without weights there is no more to check
  CORTIQ_RETURN_IF_ERROR(runtime::check_artifact(path, options));
  std::printf("%s: sound, all stored hashes match, %s (%zu weights)\n", formats::quote(path).c_str(), signer->c_str(),
              weights);
  return {};
}

} // namespace cortiq::inspect

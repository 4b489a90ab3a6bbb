// Without a mode's flag: what is in the file.

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "formats/quote.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/listing.h"
#include "tools/cortiq-inspect/model_file.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::Json;
using formats::Tensor;

/// Longest text of a metadata value in the listing for people.
constexpr size_t kLongestValue = 100;

/// Entries shown of a list of objects (masks, skills, segments, lineage, sparse index) in the listing for people.
constexpr size_t kMostRows = 64;

struct TypeTotal {
  uint64_t tensors = 0;
  uint64_t weights = 0;
  uint64_t bytes = 0;
};

std::map<std::string, TypeTotal> totals_of(const std::vector<Tensor>& tensors) {
  std::map<std::string, TypeTotal> out;
  for (const Tensor& tensor : tensors) {
    TypeTotal& total = out[std::string(tensor.type_name)];
    total.tensors += 1;
    total.weights += tensor.rows() * tensor.cols();
    total.bytes += tensor.data.size();
  }
  return out;
}

std::string dump(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Text from a file, without the quotes of quote() and never more than one line.
std::string plain(std::string_view text) {
  const std::string quoted = formats::quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

void print_metadata(const Json& value, const std::string& name) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items())
      print_metadata(inner, name.empty() ? key : name + "." + key);
    return;
  }
  if (value.is_array() && !value.empty() && value[0].is_object()) {
    for (size_t i = 0; i < std::min(value.size(), kMostRows); ++i) {
      std::string row = name;
      print_metadata(value[i], row.append("[").append(std::to_string(i)).append("]"));
    }
    if (value.size() > kMostRows)
      std::printf("  %-42s … (%zu entries)\n", plain(name).c_str(), value.size());
    return;
  }
  std::string text = value.is_string() ? value.get_ref<const std::string&>() : dump(value);
  const size_t size = text.size();
  if (size > kLongestValue)
    text.resize(kLongestValue);
  std::printf("  %-42s %s%s\n", plain(name).c_str(), plain(text).c_str(),
              size > kLongestValue ? (" … (" + std::to_string(size) + " bytes)").c_str() : "");
}

void print_text(const Listing& listing, const std::vector<Tensor>& tensors) {
  std::printf("%s: %s, %s, %zu file%s, %llu bytes\n", formats::quote(listing.files[0]).c_str(), listing.format.c_str(),
              listing.architecture.empty() ? "no architecture" : plain(listing.architecture).c_str(),
              listing.files.size(), listing.files.size() == 1 ? "" : "s",
              static_cast<unsigned long long>(listing.file_bytes));
  std::printf("\nrunnable\n");
  for (const Capability& capability : listing.runnable)
    std::printf("  %-8s %s\n", capability.name, describe(capability).c_str());
  std::printf("\nmetadata\n");
  print_metadata(listing.metadata, "");
  std::printf("\ntensors\n");
  size_t width = 0;
  for (const Tensor& tensor : tensors)
    width = std::max(width, plain(tensor.name).size());
  for (const Tensor& tensor : tensors)
    std::printf("  %-*s  %-8s %-18s %12zu bytes%s\n", static_cast<int>(width), plain(tensor.name).c_str(),
                std::string(tensor.type_name).c_str(), formats::shape_text(tensor.shape).c_str(), tensor.data.size(),
                tensor.codec == nullptr ? "  (cannot be decoded yet)" : "");
  std::printf("\ntotals\n");
  for (const auto& [type, total] : totals_of(tensors))
    std::printf("  %-8s %6llu tensors %14llu weights %14llu bytes  %.3f bits a weight\n", type.c_str(),
                static_cast<unsigned long long>(total.tensors), static_cast<unsigned long long>(total.weights),
                static_cast<unsigned long long>(total.bytes),
                total.weights == 0 ? 0.0 : 8.0 * static_cast<double>(total.bytes) / static_cast<double>(total.weights));
}

void print_json(const Listing& listing, const std::vector<Tensor>& tensors) {
  Json rows = Json::array();
  for (const Tensor& tensor : tensors)
    rows.push_back({{"name", tensor.name},
                    {"type", tensor.type_name},
                    {"code", tensor.type_code},
                    {"decodable", tensor.codec != nullptr},
                    {"shape", tensor.shape},
                    {"bytes", tensor.data.size()},
                    {"offset", tensor.offset},
                    {"file", tensor.file}});
  Json types = Json::object();
  for (const auto& [type, total] : totals_of(tensors))
    types[type] = {{"tensors", total.tensors}, {"weights", total.weights}, {"bytes", total.bytes}};
  const Json out = {{"format", listing.format},
                    {"architecture", listing.architecture},
                    {"files", listing.files},
                    {"bytes", listing.file_bytes},
                    {"runnable", capabilities_json(listing.runnable)},
                    {"metadata", listing.metadata},
                    {"tensors", std::move(rows)},
                    {"types", std::move(types)}};
  std::printf("%s\n", dump(out, 1).c_str());
}

Status run(const Arguments& arguments) {
  if (is_artifact(arguments.file))
    return list_artifact(arguments.file, arguments.get("target"), arguments.has("json"));
  if (arguments.has("target"))
    return invalid("--target picks one of the targets of an artifact, and " + formats::quote(arguments.file) +
                   " is a model; leave it out");
  CORTIQ_ASSIGN_OR_RETURN(const ModelFile model, open_model_file(arguments.file));
  const auto* cmf = std::get_if<formats::CmfFile>(&model);
  Listing listing = cmf != nullptr ? list_cmf(*cmf) : list_gguf(std::get<formats::GgufFile>(model));
  listing.runnable = capabilities_of(model);
  if (arguments.has("json"))
    print_json(listing, tensors_of(model));
  else
    print_text(listing, tensors_of(model));
  return {};
}

constexpr Option kOptions[] = {kJson, kTarget};

} // namespace

const Mode kListMode = {
    .flag = nullptr,
    .help = "list what is in FILE",
    .options = kOptions,
    .run = run,
};

} // namespace cortiq::inspect

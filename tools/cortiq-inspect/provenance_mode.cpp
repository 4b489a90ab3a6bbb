// --provenance: what an artifact was made of, by what, for what; and what its signature says.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/json.h"
#include "formats/quote.h"
#include "runtime/loader/load.h"
#include "runtime/loader/signature.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::Json;
using formats::quote;

/// A member of a section that hashes vouch for but that need not be one of ours.
const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object())
    return kNothing;
  const auto it = object.find(key);
  return it == object.end() ? kNothing : *it;
}

/// One line's worth of it.
std::string plain(const Json& value) {
  if (value.is_array()) {
    std::string out;
    for (const Json& element : value)
      out += (out.empty() ? "" : ", ") + plain(element);
    return out;
  }
  if (!value.is_string())
    return value.is_null() ? "?" : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string quoted = quote(value.get_ref<const std::string&>());
  return quoted.substr(1, quoted.size() - 2);
}

void print_text(const std::string& path, const Json& all) {
  std::printf("%s\n", quote(path).c_str());
  for (const Json& source : member(all, "sources"))
    std::printf("  source     %s, %s bytes%s%s\n", plain(member(source, "name")).c_str(),
                plain(member(source, "bytes")).c_str(), member(source, "blake2b256").is_null() ? "" : ", blake2b-256 ",
                member(source, "blake2b256").is_null() ? "" : plain(member(source, "blake2b256")).c_str());
  const Json& compiler = member(all, "compiler");
  std::printf("  compiler   %s %s, commit %s, MLIR %s, schema %s\n", plain(member(compiler, "name")).c_str(),
              plain(member(compiler, "version")).c_str(), plain(member(compiler, "commit")).c_str(),
              plain(member(compiler, "mlir")).c_str(), plain(member(compiler, "schema")).c_str());
  for (const char* key : {"targets", "numerics", "options", "weights", "root", "signature"})
    std::printf("  %-10s %s\n", key, plain(member(all, key)).c_str());
}

std::string hex(const flatbuffers::Vector<uint8_t>* bytes) {
  return bytes ? formats::hex_digits({bytes->data(), bytes->size()}) : std::string();
}

Status run(const Arguments& arguments) {
  const std::string& path = arguments.file;
  if (!is_artifact(path))
    return invalid(quote(path) + " is no artifact: a model's own header says where it comes from");
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  CORTIQ_ASSIGN_OR_RETURN(const auto artifact, runtime::load_artifact(path, options));
  const std::span<const uint8_t> section = artifact->file.section(formats::ArtifactSection::kProvenance);
  const std::string_view text(reinterpret_cast<const char*>(section.data()), section.size());
  StatusOr<Json> parsed = formats::parse_json(text, "provenance of " + quote(path));
  if (!parsed.ok() || !parsed->is_object())
    return unsupported(quote(path) + " has no provenance that this version can read; compile the model again");
  StatusOr<std::string> signer = runtime::describe_signature(artifact->file, path);
  if (!signer.ok())
    return signer.status().with_prefix(quote(path));
  // In the order of the section, what is read off the file behind it.
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const char* key : {"sources", "compiler", "targets", "numerics", "options"})
    all[key] = nlohmann::ordered_json(member(*parsed, key));
  const bool embedded = artifact->manifest->weights_embedded();
  all["weights"] = embedded ? hex(artifact->manifest->weights_root()) : "none";
  all["root"] = formats::hex_digits(artifact->file.root());
  all["signature"] = *signer;
  if (arguments.has("json"))
    std::printf("%s\n", all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  else
    print_text(path, Json(all));
  return {};
}

constexpr Option kOptions[] = {kJson};

} // namespace

const Mode kProvenanceMode = {
    .flag = "--provenance",
    .help = "what an artifact was made of, by which compiler, with which options, and who signed it",
    .options = kOptions,
    .run = run};

} // namespace cortiq::inspect

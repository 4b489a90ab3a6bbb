// --codecs: the codec table of this build.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "formats/codec/codec.h"
#include "formats/encode/encoder.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using Json = nlohmann::ordered_json;
using formats::Codec;
using formats::DotForm;

/// A matrix that every codec can hold; large enough that what a row or a tensor costs besides does not show.
constexpr uint64_t kRows = 4096;
constexpr uint64_t kColumns = 4096;

const char* form_name(DotForm form) {
  switch (form) {
  case DotForm::kAffineInt:
    return "affine int";
  case DotForm::kTable16:
    return "table 16";
  case DotForm::kCodebook:
    return "codebook";
  case DotForm::kFloat:
    return "float";
  case DotForm::kNone:
    return "raw data";
  }
  return "";
}

/// Of a large matrix, the least where payloads differ in size.
double bits_per_weight(const Codec& codec) {
  const StatusOr<uint64_t> bytes = codec.payload_bytes(codec, kRows, kColumns);
  return bytes.ok() ? static_cast<double>(*bytes) * 8 / (kRows * kColumns) : 0;
}

Json name_in(std::string_view name, int code) {
  return name.empty() ? Json() : Json{{"name", name}, {"code", code}};
}

Json row(const Codec& codec) {
  return {{"name", codec.name},
          {"cmf", name_in(codec.cmf_name, codec.cmf_code)},
          {"gguf", name_in(codec.gguf_name, codec.gguf_code)},
          {"block", codec.block},
          {"bits_per_weight", bits_per_weight(codec)},
          {"variable_size", codec.variable_size},
          {"form", form_name(codec.form)},
          {"decodes", codec.decode_row != nullptr},
          {"encodes", formats::find_encoder(codec.id) != nullptr}};
}

std::string in_container(const Json& name) {
  return name.is_null() ? "-" : name["name"].get<std::string>() + " (" + std::to_string(name["code"].get<int>()) + ")";
}

void print_row(const Json& r) {
  std::printf("%-12s %-16s %-16s %5u %8.4f%c %s%s\n", r["name"].get<std::string>().c_str(),
              in_container(r["cmf"]).c_str(), in_container(r["gguf"]).c_str(), r["block"].get<unsigned>(),
              r["bits_per_weight"].get<double>(), r["variable_size"].get<bool>() ? '+' : ' ',
              r["form"].get<std::string>().c_str(), r["encodes"].get<bool>() ? ", encodes" : "");
}

Status run(const Arguments& arguments) {
  Json rows = Json::array();
  for (const Codec& codec : formats::codec_table())
    if (!codec.cmf_name.empty() || !codec.gguf_name.empty()) // others exist inside kernels only
      rows.push_back(row(codec));
  if (arguments.has("json")) {
    std::printf("%s\n", rows.dump(2).c_str());
    return {};
  }
  std::printf("%-12s %-16s %-16s %5s %9s %s\n", "codec", "CMF (code)", "GGUF (type)", "block", "bits ", "form");
  for (const Json& r : rows)
    print_row(r);
  return {};
}

constexpr Option kOptions[] = {kJson};

} // namespace

const Mode kCodecsMode = {
    .flag = "--codecs",
    .help = "list the codecs of this build; takes no FILE",
    .options = kOptions,
    .takes_file = false,
    .run = run,
};

} // namespace cortiq::inspect

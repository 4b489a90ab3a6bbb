// --tokenize, --detokenize, --render: the text side of a model file, JSON in and JSON out, so that one process serves
// many texts.

#include "tools/cortiq-inspect/modes.h"

#include <cstdint>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/text_source.h"
#include "runtime/text/tokenizer.h"

namespace cortiq::inspect {
namespace {

using formats::Json;
using formats::quote;
using runtime::text::Tokenizer;

std::string_view text_of(const formats::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

StatusOr<Json> read_input(const Arguments& arguments) {
  const std::string path(arguments.get("input"));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(path));
  CORTIQ_ASSIGN_OR_RETURN(Json input, formats::parse_json(text_of(file), quote(path)));
  if (!input.is_array())
    return invalid(quote(path) + " has to hold a JSON list");
  return input;
}

StatusOr<Tokenizer> load_tokenizer(const Arguments& arguments) {
  CORTIQ_ASSIGN_OR_RETURN(const runtime::text::TextSource source, runtime::text::load_text_source(arguments.file));
  for (const std::string& warning : source.warnings)
    std::fprintf(stderr, "cortiq-inspect: note: %s\n", warning.c_str());
  StatusOr<Tokenizer> tokenizer = Tokenizer::from_bytes(source.tokenizer_json);
  CORTIQ_RETURN_IF_ERROR(tokenizer.status().with_prefix(quote(arguments.file)));
  return tokenizer;
}

void print(const Json& value) {
  std::printf("%s\n", value.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

Status tokenize(const Arguments& arguments) {
  CORTIQ_ASSIGN_OR_RETURN(const Tokenizer tokenizer, load_tokenizer(arguments));
  CORTIQ_ASSIGN_OR_RETURN(const Json input, read_input(arguments));
  runtime::text::EncodeOptions options;
  options.add_special = arguments.has("add-special");
  options.parse_special = !arguments.has("no-parse-special");
  Json output = Json::array();
  for (const Json& text : input) {
    if (!text.is_string())
      return invalid("--tokenize needs a list of texts, such as [\"a\", \"b\"]");
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids,
                            tokenizer.encode(text.get_ref<const std::string&>(), options));
    output.push_back(ids);
  }
  print(output);
  return {};
}

StatusOr<std::vector<uint32_t>> read_ids(const Json& list) {
  const Status wrong = invalid("--detokenize needs a list of lists of ids, such as [[1, 2], [3]]");
  if (!list.is_array())
    return wrong;
  std::vector<uint32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX)
      return wrong;
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

Status detokenize(const Arguments& arguments) {
  CORTIQ_ASSIGN_OR_RETURN(const Tokenizer tokenizer, load_tokenizer(arguments));
  CORTIQ_ASSIGN_OR_RETURN(const Json input, read_input(arguments));
  Json output = Json::array();
  for (const Json& list : input) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, read_ids(list));
    CORTIQ_ASSIGN_OR_RETURN(std::string text, tokenizer.decode(ids, arguments.has("skip-special")));
    output.push_back(std::move(text));
  }
  print(output);
  return {};
}

Status render(const Arguments& arguments) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile source, formats::MappedFile::open(arguments.file));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile variables,
                          formats::MappedFile::open(std::string(arguments.get("input"))));
  const std::string now = arguments.has("now") ? std::string(arguments.get("now")) : runtime::text::local_time_now();
  StatusOr<std::string> text = runtime::text::render_chat_template(text_of(source), text_of(variables), now);
  CORTIQ_RETURN_IF_ERROR(text.status().with_prefix(quote(arguments.file)));
  std::fwrite(text->data(), 1, text->size(), stdout);
  return {};
}

constexpr Option kInput = {"--input", "IN.json", "JSON with the texts, ids or variables", true};

constexpr Option kTokenizeOptions[] = {
    kInput,
    {"--add-special", nullptr, "with what the tokenizer puts around a text (BOS, EOS)"},
    {"--no-parse-special", nullptr, "special tokens spelled out in a text are plain text"},
};

constexpr Option kDetokenizeOptions[] = {
    kInput,
    {"--skip-special", nullptr, "leave special tokens out"},
};

constexpr Option kRenderOptions[] = {
    kInput,
    {"--now", "TIME", "the clock of strftime_now, as 2031-03-07T08:09:10 (default: local time)"},
};

} // namespace

const Mode kTokenizeMode = {
    .flag = "--tokenize",
    .help = "print token ids of a list of texts; FILE may be a tokenizer.json",
    .options = kTokenizeOptions,
    .run = tokenize,
};

const Mode kDetokenizeMode = {
    .flag = "--detokenize",
    .help = "print the texts of a list of lists of ids; FILE may be a tokenizer.json",
    .options = kDetokenizeOptions,
    .run = detokenize,
};

const Mode kRenderMode = {
    .flag = "--render",
    .help = "render FILE, a chat template, with the variables in --input",
    .options = kRenderOptions,
    .run = render,
};

} // namespace cortiq::inspect

#include "runtime/cli/run.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "formats/atomic_file.h"
#include "runtime/cli/chat.h"
#include "runtime/cli/output.h"
#include "runtime/generate/generate.h"

namespace cortiq::runtime::cli {
namespace {

/// The prompt's ids: as given, or the text's with what the tokenizer puts around it. An empty text starts from BOS.
StatusOr<std::vector<uint32_t>> prompt_ids(const RunOptions& options, const Loaded& loaded) {
  if (options.tokens)
    return *options.tokens;
  if (!loaded.text)
    return unsupported("the model has no tokenizer; give the prompt with --tokens");
  CORTIQ_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, loaded.text->tokenizer.encode(*options.prompt));
  if (ids.empty() && loaded.text->config.bos_id)
    ids.push_back(*loaded.text->config.bos_id);
  return ids;
}

/// Writes the logits of every prompt position; the engine is then as before.
Status write_logits(const std::string& path, Engine& engine, std::span<const uint32_t> prompt) {
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(collect_logits(engine, prompt, [&](std::span<const float> rows) {
    return file.write({reinterpret_cast<const uint8_t*>(rows.data()), rows.size_bytes()});
  }));
  engine.reset();
  return file.commit();
}

Status print_json(const Generated& result, const std::string& text, const Loaded& loaded) {
  nlohmann::ordered_json out;
  out["tokens"] = result.tokens;
  out["text"] = text;
  out["finish_reason"] = finish_reason_name(result.finish);
  out["usage"] = {{"prompt_tokens", result.prompt_tokens},
                  {"completion_tokens", result.tokens.size()},
                  {"total_tokens", result.prompt_tokens + result.tokens.size()}};
  out["timings"] = {{"load_ms", loaded.load_seconds * 1e3},
                    {"prefill_ms", result.prefill_seconds * 1e3},
                    {"first_token_ms", result.first_token_seconds * 1e3},
                    {"decode_ms", result.decode_seconds * 1e3},
                    {"prefill_tokens_per_second", prefill_speed(result)},
                    {"decode_tokens_per_second", decode_speed(result)}};
  return print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

Status run_prompt(const RunOptions& options, Loaded& loaded) {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> prompt, prompt_ids(options, loaded));
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(options.file, options.logits));
  if (!options.logits.empty())
    CORTIQ_RETURN_IF_ERROR(write_logits(options.logits, *loaded.engine, prompt));
  Generated result;
  result.prompt_tokens = prompt.size();
  Printer printer(loaded.text, !options.json);
  if (options.max_tokens != 0) {
    sampling::Sampler sampler = make_sampler(options, loaded);
    CORTIQ_ASSIGN_OR_RETURN(result, generate(*loaded.engine, sampler, prompt, generate_options(options, loaded),
                                             [&](uint32_t id) { return printer.push(id); }));
    CORTIQ_RETURN_IF_ERROR(printer.finish());
  } else if (options.logits.empty()) {
    CORTIQ_RETURN_IF_ERROR(collect_logits(*loaded.engine, prompt, [](std::span<const float>) { return Status(); }));
  }
  if (options.json)
    CORTIQ_RETURN_IF_ERROR(print_json(result, printer.text(), loaded));
  if (options.stats)
    print_stats(result, loaded);
  return {};
}

} // namespace

Status run(const RunOptions& options, Loaded& loaded) {
  CORTIQ_RETURN_IF_ERROR(options.chat                       ? run_chat(options, loaded)
                         : options.prompt || options.tokens ? run_prompt(options, loaded)
                                                            : Status());
  if (options.verbose && loaded.report)
    for (const std::string& line : loaded.report())
      std::fprintf(stderr, "%s\n", line.c_str());
  return {};
}

} // namespace cortiq::runtime::cli

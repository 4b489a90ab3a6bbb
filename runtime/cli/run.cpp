#include "runtime/cli/run.h"

#include <algorithm>
#include <cstdio>

#include "formats/atomic_file.h"
#include "runtime/cli/chat.h"
#include "runtime/cli/output.h"
#include "runtime/cli/overlay.h"
#include "runtime/generate/generate.h"

namespace cortiq::runtime::cli {
namespace {

/// The prompt's ids: as given, or the text's with what the tokenizer puts around it. An empty text starts from BOS.
StatusOr<std::vector<uint32_t>> prompt_ids(const RunOptions& options, const Loaded& loaded) {
  if (options.tokens)
    return *options.tokens;
  if (!loaded.text)
    return no_tokenizer(loaded);
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

Status run_prompt(const RunOptions& options, Loaded& loaded) {
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> prompt, prompt_ids(options, loaded));
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(options.file, options.logits));
  CORTIQ_RETURN_IF_ERROR(apply_overlay(options, prompt, loaded));
  if (!options.logits.empty())
    CORTIQ_RETURN_IF_ERROR(write_logits(options.logits, *loaded.engine, prompt));
  Generated result;
  result.prompt_tokens = prompt.size();
  Printer printer(loaded.text, !options.json);
  if (options.max_tokens != 0) {
    sampling::Sampler sampler = make_sampler(options, loaded);
    CORTIQ_ASSIGN_OR_RETURN(result, generate(*loaded.engine, sampler, prompt, generate_options(options, loaded),
                                             [&](uint32_t id, std::span<const float>) { return printer.push(id); }));
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
  if (options.stats && loaded.summary)
    for (const std::string& line : loaded.summary())
      std::fprintf(stderr, "%s\n", line.c_str());
  if (options.verbose && !loaded.target_reason.empty())
    std::fprintf(stderr, "target %s: %s\n", loaded.target.c_str(), loaded.target_reason.c_str());
  if (options.verbose && loaded.report)
    for (const std::string& line : loaded.report())
      std::fprintf(stderr, "%s\n", line.c_str());
  return {};
}

} // namespace cortiq::runtime::cli

#include "runtime/cli/run.h"

#include <algorithm>
#include <cstdio>

#include "formats/atomic_file.h"
#include "runtime/cli/chat.h"
#include "runtime/cli/output.h"
#include "runtime/cli/overlay.h"
#include "runtime/generate/common_beginning.h"
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

/// The tokens to run, of which the engine holds the first `kept` already.
struct Beginning {
  std::vector<uint32_t> tokens;
  uint64_t kept = 0;
  uint64_t draws = 0;     ///< random numbers that were taken before
  bool generated = false; ///< what is left to run was chosen before
};

/// The prompt, behind what a saved session holds of it; without a prompt, all that was saved. At least one token is
/// left to run, for its logits.
StatusOr<Beginning> begin(const RunOptions& options, std::vector<uint32_t> prompt, Loaded& loaded) {
  Beginning out{std::move(prompt)};
  if (options.load_session.empty())
    return out;
  CORTIQ_ASSIGN_OR_RETURN(const SavedSequence saved, loaded.restore(options.load_session));
  if (!options.prompt && !options.tokens) {
    out.tokens = saved.tokens;
    out.draws = saved.draws;
    out.generated = saved.last_generated;
  }
  out.kept = common_beginning(std::span(saved.tokens).first(loaded.engine->position()), out.tokens);
  loaded.engine->rewind(out.kept);
  return out;
}

/// What the engine holds, and what was chosen last where that has not run.
Status save(const RunOptions& options, Loaded& loaded, std::vector<uint32_t> tokens, uint64_t draws, bool generated) {
  return options.save_session.empty()
             ? Status()
             : loaded.save(options.save_session, {std::move(tokens), draws, "", /*last_generated=*/generated});
}

/// Runs the prompt and generates nothing. A cache ends before the last token: whoever uses it wants that one's logits.
Status run_only(const RunOptions& options, Loaded& loaded, const Beginning& beginning) {
  std::span<const uint32_t> rest = std::span(beginning.tokens).subspan(beginning.kept);
  if (!options.save_session.empty() && !rest.empty())
    rest = rest.first(rest.size() - 1);
  if (!rest.empty())
    CORTIQ_RETURN_IF_ERROR(collect_logits(*loaded.engine, rest, [](std::span<const float>) { return Status(); }));
  return save(options, loaded, beginning.tokens, beginning.draws, beginning.generated);
}

Status run_prompt(const RunOptions& options, Loaded& loaded) {
  std::vector<uint32_t> prompt;
  if (options.prompt || options.tokens) {
    CORTIQ_ASSIGN_OR_RETURN(prompt, prompt_ids(options, loaded));
  }
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(options.file, options.logits));
  CORTIQ_RETURN_IF_ERROR(apply_overlay(options, prompt, loaded));
  if (!options.logits.empty())
    CORTIQ_RETURN_IF_ERROR(write_logits(options.logits, *loaded.engine, prompt));
  CORTIQ_ASSIGN_OR_RETURN(const Beginning beginning, begin(options, std::move(prompt), loaded));
  Generated result;
  result.prompt_tokens = beginning.tokens.size() - beginning.kept;
  Printer printer(loaded.text, !options.json);
  if (options.max_tokens != 0) {
    sampling::Sampler sampler = make_sampler(options, loaded);
    sampler.observe(std::span(beginning.tokens).first(beginning.kept));
    sampler.skip(beginning.draws);
    GenerateOptions how = generate_options(options, loaded);
    how.continues = beginning.generated;
    CORTIQ_ASSIGN_OR_RETURN(result,
                            generate(*loaded.engine, sampler, std::span(beginning.tokens).subspan(beginning.kept), how,
                                     [&](uint32_t id, std::span<const float>) { return printer.push(id); }));
    CORTIQ_RETURN_IF_ERROR(printer.finish());
    std::vector<uint32_t> tokens = beginning.tokens;
    tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
    CORTIQ_RETURN_IF_ERROR(
        save(options, loaded, std::move(tokens), sampler.draws(), beginning.generated || !result.tokens.empty()));
  } else if (options.logits.empty() || !options.save_session.empty()) {
    CORTIQ_RETURN_IF_ERROR(run_only(options, loaded, beginning));
  }
  if (options.json)
    CORTIQ_RETURN_IF_ERROR(print_json(result, printer.text(), loaded, beginning.kept));
  if (options.stats)
    print_stats(result, loaded, beginning.kept);
  return {};
}

} // namespace

Status run(const RunOptions& options, Loaded& loaded) {
  // Before hours of talk: whether what is left of them could be written.
  if (!options.save_session.empty()) {
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(options.file, options.save_session));
    CORTIQ_RETURN_IF_ERROR(formats::AtomicFile::create(options.save_session).status());
  }
  const bool prompt = options.prompt || options.tokens || !options.load_session.empty();
  CORTIQ_RETURN_IF_ERROR(options.chat ? run_chat(options, loaded) : prompt ? run_prompt(options, loaded) : Status());
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

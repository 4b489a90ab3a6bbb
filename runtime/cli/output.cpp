#include "runtime/cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/cli/overlay.h"
#include "runtime/generate/model_sampler.h"

namespace cortiq::runtime::cli {

Status print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return io_error(std::string("standard output cannot be written: ") + std::strerror(errno));
  return {};
}

Printer::Printer(const std::optional<text::TextModel>& text, bool show) : show_(show) {
  if (text)
    decoder_.emplace(text->tokenizer);
}

Status Printer::add(std::string_view piece) {
  text_ += piece;
  return show_ && !piece.empty() ? print(piece) : Status();
}

Status Printer::push(uint32_t id) {
  if (!decoder_) {
    std::string piece = text_.empty() ? "" : " ";
    piece += std::to_string(id);
    return add(piece);
  }
  CORTIQ_ASSIGN_OR_RETURN(const std::string piece, decoder_->push(id));
  return add(piece);
}

Status Printer::finish() {
  if (decoder_) {
    CORTIQ_ASSIGN_OR_RETURN(const std::string rest, decoder_->flush());
    CORTIQ_RETURN_IF_ERROR(add(rest));
  }
  return show_ ? print("\n") : Status();
}

Status no_tokenizer(const Loaded& loaded) {
  return unsupported("the model has no tokenizer" + (loaded.text_absent.empty() ? "" : ": " + loaded.text_absent) +
                     "; give the prompt as ids with --tokens");
}

double prefill_speed(const Generated& result) {
  return result.prefill_seconds > 0 ? static_cast<double>(result.prompt_tokens) / result.prefill_seconds : 0;
}

double decode_speed(const Generated& result) {
  // The first token came from the prompt's logits.
  return result.decode_seconds > 0 && result.tokens.size() > 1
             ? static_cast<double>(result.tokens.size() - 1) / result.decode_seconds
             : 0;
}

double acceptance(const Generated& result) {
  return result.drafts.guessed == 0
             ? 0
             : static_cast<double>(result.drafts.accepted) / static_cast<double>(result.drafts.guessed);
}

Status print_json(const Generated& result, const std::string& text, const Loaded& loaded, uint64_t reused) {
  nlohmann::ordered_json out;
  out["tokens"] = result.tokens;
  out["text"] = text;
  out["finish_reason"] = finish_reason_name(result.finish);
  const uint64_t prompt = reused + result.prompt_tokens;
  out["usage"] = {{"prompt_tokens", prompt},
                  {"completion_tokens", result.tokens.size()},
                  {"total_tokens", prompt + result.tokens.size()}};
  if (reused != 0)
    out["usage"]["prompt_tokens_details"] = {{"cached_tokens", reused}};
  out["timings"] = {{"load_ms", loaded.load_seconds * 1e3},
                    {"prefill_ms", result.prefill_seconds * 1e3},
                    {"first_token_ms", result.first_token_seconds * 1e3},
                    {"decode_ms", result.decode_seconds * 1e3},
                    {"prefill_tokens_per_second", prefill_speed(result)},
                    {"decode_tokens_per_second", decode_speed(result)}};
  if (!loaded.target.empty())
    out["target"] = {{"name", loaded.target}, {"held", loaded.targets}, {"why", loaded.target_reason}};
  if (loaded.engine->can_draft())
    out["speculation"] = {
        {"drafts", result.drafts.guessed}, {"accepted", result.drafts.accepted}, {"acceptance", acceptance(result)}};
  if (!loaded.engine->overlay().empty())
    out["overlay"] = nlohmann::ordered_json::parse(overlay_json(loaded));
  return print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void print_stats(const Generated& result, const Loaded& loaded, uint64_t reused) {
  std::fprintf(stderr, "%s\n", loaded.description.c_str());
  if (const formats::OverlayCatalog& overlay = loaded.engine->overlay(); !overlay.empty())
    std::fprintf(stderr, "%s\n", formats::describe_selection(overlay, loaded.selection).c_str());
  std::fprintf(stderr, "load %.1f ms; prompt %llu tokens in %.1f ms (%.1f tokens/s); first token after %.1f ms\n",
               loaded.load_seconds * 1e3, static_cast<unsigned long long>(result.prompt_tokens),
               result.prefill_seconds * 1e3, prefill_speed(result), result.first_token_seconds * 1e3);
  if (reused != 0)
    std::fprintf(stderr, "%llu tokens before them came from the saved session\n",
                 static_cast<unsigned long long>(reused));
  std::fprintf(stderr, "generated %zu tokens in %.1f ms (%.1f tokens/s); finish: %s\n", result.tokens.size(),
               result.decode_seconds * 1e3, decode_speed(result),
               std::string(finish_reason_name(result.finish)).c_str());
  if (loaded.engine->can_draft())
    std::fprintf(stderr, "drafts %llu, accepted %llu (%.1f %%)\n",
                 static_cast<unsigned long long>(result.drafts.guessed),
                 static_cast<unsigned long long>(result.drafts.accepted), acceptance(result) * 100);
  std::fputs(loaded.engine->report().c_str(), stderr);
}

sampling::Sampler make_sampler(const RunOptions& options, const Loaded& loaded) {
  return model_sampler(options.sampling, *loaded.engine, loaded.token_count,
                       loaded.text ? std::span<const uint32_t>(loaded.text->config.suppress_ids)
                                   : std::span<const uint32_t>());
}

GenerateOptions generate_options(const RunOptions& options, const Loaded& loaded) {
  GenerateOptions out;
  out.speculation = options.speculation;
  if (options.max_tokens)
    out.max_tokens = *options.max_tokens;
  if (!options.ignore_eos && loaded.text)
    out.stop_ids = loaded.text->config.eos_ids;
  return out;
}

} // namespace cortiq::runtime::cli

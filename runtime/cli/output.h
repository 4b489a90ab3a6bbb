#pragma once

// What is written while and after a generation.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/status.h"
#include "runtime/cli/run.h"
#include "runtime/generate/generate.h"

namespace cortiq::runtime::cli {

/// Writes to standard output and flushes; a closed or full output is a failure.
Status print(std::string_view text);

/// Turns ids into text (or into numbers where there is no tokenizer), shown as it becomes final.
class Printer {
public:
  /// `show` writes it to standard output; text() has it in any case.
  Printer(const std::optional<text::TextModel>& text, bool show);
  Status push(uint32_t id);
  Status finish(); ///< the rest, and a line end
  const std::string& text() const { return text_; }

private:
  Status add(std::string_view piece);

  std::optional<text::StreamDecoder> decoder_;
  bool show_;
  std::string text_;
};

/// The refusal of a request for text on a model that has no tokenizer: why it has none, and what works without.
Status no_tokenizer(const Loaded& loaded);

double prefill_speed(const Generated& result); ///< tokens a second, 0 when nothing was measured
double decode_speed(const Generated& result);
double acceptance(const Generated& result); ///< share of the drafts that were right, 0 without any

/// One answer as one line: tokens, text, finish_reason, usage, timings, and speculation where the model can. `reused`
/// tokens of the prompt came from a saved session.
Status print_json(const Generated& result, const std::string& text, const Loaded& loaded, uint64_t reused = 0);

void print_stats(const Generated& result, const Loaded& loaded, uint64_t reused = 0);

sampling::Sampler make_sampler(const RunOptions& options, const Loaded& loaded);
GenerateOptions generate_options(const RunOptions& options, const Loaded& loaded);

} // namespace cortiq::runtime::cli

#pragma once

// The generation loop: prompt in, tokens out, on any Engine.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/status.h"
#include "runtime/engine.h"
#include "runtime/generate/stepper.h"
#include "runtime/generate/token_constraint.h"
#include "runtime/sampling/sampler.h"

namespace cortiq::runtime {

enum class FinishReason {
  kStop,      ///< a stop id was chosen, or the constraint ended the text
  kLength,    ///< the token limit, or the context, is reached
  kCancelled, ///< GenerateOptions::cancelled said so
};
std::string_view finish_reason_name(FinishReason reason);

struct GenerateOptions {
  uint64_t max_tokens = UINT64_MAX;             ///< besides the context's own limit
  std::vector<uint32_t> stop_ids;               ///< end the text and are not part of it
  Speculation speculation = Speculation::kAuto; ///< for engines that can guess ahead
  /// Asked before each step and each batch of the prompt; true ends the generation. The engine then holds what was run.
  std::function<bool()> cancelled = nullptr;
  TokenConstraint* constraint = nullptr; ///< asked before each choice; null: none
  bool continues = false;                ///< the prompt is what was generated before, and is computed as that
  bool sink_takes_logits = false;        ///< the sink is given rows of logits; else they may be empty
};

struct Generated {
  std::vector<uint32_t> tokens;
  FinishReason finish = FinishReason::kLength;
  uint64_t prompt_tokens = 0;
  double prefill_seconds = 0;     ///< until the prompt's last logits
  double first_token_seconds = 0; ///< until the first token was chosen
  double decode_seconds = 0;      ///< of the forward passes and choices after the first token
  DraftCounts drafts;
};

/// Called with each token as it is chosen, and the logits it was chosen from (sink_takes_logits); a failure ends the
/// generation and is returned.
using TokenSink = std::function<Status(uint32_t id, std::span<const float> logits)>;

/// Runs `prompt` (not empty, and it must fit what is left of the engine's context) and generates. A context of which
/// the prompt leaves nothing still yields one token. A position whose logits hold a NaN is a failure.
StatusOr<Generated> generate(Engine& engine, sampling::Sampler& sampler, std::span<const uint32_t> prompt,
                             const GenerateOptions& options, const TokenSink& sink);

/// Receives the logits of consecutive positions, [rows x vocab].
using LogitsSink = std::function<Status(std::span<const float> rows)>;

/// Runs `prompt` and hands out the logits of every position.
Status collect_logits(Engine& engine, std::span<const uint32_t> prompt, const LogitsSink& sink);

} // namespace cortiq::runtime

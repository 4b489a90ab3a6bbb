#pragma once

// What the generation driver needs of a model: the compiled artifact's session and the compiler's reference interpreter
// both stand behind it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/overlay/routing.h"
#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/top_logits.h"

namespace cortiq::runtime {

/// One model with one conversation's state. Not thread-safe.
class Engine {
public:
  virtual ~Engine() = default;

  /// Logits a position; at least 1.
  virtual uint64_t vocab() const = 0;
  /// Positions that fit the state.
  virtual uint64_t max_context() const = 0;
  /// Tokens held so far.
  virtual uint64_t position() const = 0;
  /// Tokens of a forward() call that the engine handles best; longer calls are legal.
  virtual uint64_t preferred_batch() const { return 64; }

  /// Appends `tokens` (at least one) of a prompt, or of any text that is given, to the state. The logits of every
  /// token's position when `all_logits` (row-major [tokens x vocab]), else of the last one only; valid until the next
  /// call. Fails for an id outside the vocabulary and for more tokens than the context has room for; the state is then
  /// as before.
  virtual StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool all_logits) = 0;
  /// The same for a token that was generated: chosen from the logits of the one before. An engine may compute prompts
  /// in other numbers than what is generated, and tells them apart by nothing but this.
  virtual StatusOr<std::span<const float>> append(uint32_t token) { return forward({&token, 1}, false); }

  /// Whether forward() can give the largest logits of one row in place of the row.
  virtual bool can_top() const { return false; }
  /// From now on forward() of a single row may do so; none = no more.
  virtual void want_top(const std::optional<TopAsk>&) {}
  /// What the latest forward() gave in place of its row, valid until the next call; null = the row.
  virtual const TopLogits* top() const { return nullptr; }
  /// The row behind top().
  virtual StatusOr<std::span<const float>> whole_row() { return unsupported("this engine gives whole rows"); }

  /// Whether the model can guess the token after the next one.
  virtual bool can_draft() const { return false; }
  /// Whether draft() will be called, from the next forward() on: what it reads is kept only then.
  virtual void keep_drafts(bool) {}
  /// Should `next` follow the tokens held: logits of the token behind it, as the model guesses them. Empty when there
  /// is no guess to be had. The state is as before, but the logits of the last forward() are gone.
  virtual std::span<const float> draft(uint32_t /*next*/) { return {}; }
  /// append() of `token` and a guess of the one behind it, with the logits of both, bit for bit those of two calls.
  /// Taking the guess back, by rewind(position() - 1) before the next call, costs nothing.
  virtual StatusOr<std::span<const float>> verify(uint32_t token, uint32_t guess) {
    const uint32_t ids[] = {token, guess};
    return forward(ids, true);
  }

  /// Forgets everything after the first `position` tokens; `position` is at most position().
  virtual void rewind(uint64_t position) = 0;
  void reset() { rewind(0); }

  /// The skills and task masks to choose from; empty for most models.
  virtual const formats::OverlayCatalog& overlay() const {
    static const formats::OverlayCatalog none;
    return none;
  }
  /// Puts a selection of overlay() in force, from the next forward() on. What the state holds was computed under the
  /// former one: rewind to 0 and run the tokens again to have it computed anew.
  virtual Status set_overlay(const formats::OverlaySelection& selection) {
    return selection == formats::OverlaySelection() ? Status() : unsupported("this engine changes no weights");
  }
  /// Mean of the residual stream over `tokens`, from an empty state, without skill and mask, behind the layers that
  /// overlay()'s descriptors read. The state is empty afterwards, the selection as before.
  virtual StatusOr<formats::ResidualMeans> residual_means(std::span<const uint32_t> tokens) {
    return unsupported("this engine does not show its residual stream");
  }

  /// One or more lines for --stats about the engine's last work; empty when it keeps none.
  virtual std::string report() { return {}; }
};

} // namespace cortiq::runtime

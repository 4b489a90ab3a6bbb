#pragma once

// Many conversations on one model, computed together: a step reads the weights once for the tokens of all of them. What
// a sequence computes is bit for bit what a session of its own computes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/executor/kv_type.h"
#include "runtime/memory/placement.h"
#include "runtime/session/session.h"

namespace cortiq::runtime {

struct BatchOptions {
  unsigned threads = 0;                    ///< 0: min(affinity, cgroup quota, useful cores)
  std::optional<KvType> kv = std::nullopt; ///< cache element type
  uint64_t max_context = 0;                ///< tokens a sequence; 0: what the artifact was compiled for
  uint64_t sequences = 16;                 ///< that are open at a time
  /// Bytes of key/value cache for all sequences and for beginnings that are kept; one whole context at least. 0: whole
  /// contexts for all, but no more than a quarter of the machine's memory, or of the model's budget.
  uint64_t cache_bytes = 0;
  bool profile = false; ///< keep times for profile()
  Placement placement = {};
  /// Runs what it can; its sequences are computed one after the other. Null = the CPU runs all.
  std::shared_ptr<const GpuModel> gpu = nullptr;
  bool cpu_fallback = false; ///< see SessionOptions
};

/// What the cache of all sequences holds. Pages are of kPositionBlock positions of all layers.
struct BatchCacheState {
  uint64_t pages = 0, page_bytes = 0;
  uint64_t used = 0; ///< by open sequences
  uint64_t kept = 0; ///< of ended ones, until their place is needed
};

/// Not thread-safe. A sequence is named by a number that is given again once it is closed.
class BatchEngine {
public:
  using Sequence = uint32_t;

  /// The next tokens of a sequence in a step.
  struct Part {
    Sequence sequence = 0;
    std::span<const uint32_t> tokens; ///< at least one
    bool logits = true;               ///< of the last of them
    /// Where the largest logits may do: asked with them, in place of the row, in the step. What it leaves open is
    /// answered with the row.
    std::optional<TopAsk> top = std::nullopt;
    std::function<std::optional<uint32_t>(const TopLogits&)> choose = nullptr;
    bool generated = false; ///< the tokens were chosen from logits, see Engine::append(); else they are a prompt's
  };
  /// What came of a part. A failure is this sequence's alone: it is to be closed.
  struct Result {
    Status status;
    std::span<const float> logits;                 ///< until the next step; empty when chosen
    std::optional<uint32_t> chosen = std::nullopt; ///< by the part's own choice
  };

  static StatusOr<std::unique_ptr<BatchEngine>> create(std::shared_ptr<const Model> model,
                                                       const BatchOptions& options = {});
  virtual ~BatchEngine() = default;

  virtual uint64_t vocab() const = 0;
  virtual uint64_t max_context() const = 0;
  /// Tokens that a step takes at most, of all its parts.
  virtual uint64_t max_batch() const = 0;
  virtual uint64_t sequences() const = 0;
  virtual unsigned threads() const = 0;

  /// Begins a sequence under a selection of the model's overlay. It holds the longest beginning of `prompt` that is
  /// known already, but never all of it: run it from position() on. With recurrent states only what an ended sequence
  /// held as a whole is known, to one sequence, and as long as the ended one's place is not needed. Fails when all
  /// sequences are in use, and for a selection that the model does not have.
  virtual StatusOr<Sequence> open(const formats::OverlaySelection& selection, std::span<const uint32_t> prompt) = 0;
  /// Another sequence that holds what this one holds; it shares all whole pages. Fails when all sequences are in use or
  /// no page is free.
  virtual StatusOr<Sequence> fork(Sequence sequence) = 0;
  /// Ends it. What it held is known to open() as long as its place is not needed.
  virtual void close(Sequence sequence) = 0;
  virtual uint64_t position(Sequence sequence) const = 0;
  /// Whether two sequences can be in one step: their selections are equal.
  virtual bool compatible(Sequence a, Sequence b) const = 0;
  /// Whether several sequences can share a beginning; with recurrent states only forks do.
  virtual bool shares_beginnings() const = 0;
  /// Tokens of `prompt` that open() would find now.
  virtual uint64_t known(const formats::OverlaySelection& selection, std::span<const uint32_t> prompt) const = 0;

  /// Pages that `tokens` more of a sequence take.
  virtual uint64_t pages_for(Sequence sequence, uint64_t tokens) const = 0;
  /// Pages that can be had, kept ones included.
  virtual uint64_t pages_available() const = 0;
  virtual BatchCacheState cache() const = 0;

  /// Runs the parts, of different, compatible sequences; results are in their order. Fails as a whole, and leaves
  /// everything as it was, for what is not allowed: an id outside the vocabulary, more tokens than max_batch() or a
  /// context takes, more pages than there are.
  virtual StatusOr<std::span<const Result>> step(std::span<const Part> parts) = 0;

  /// With BatchOptions::profile, see Session::profile().
  virtual Profile profile() const = 0;
};

} // namespace cortiq::runtime

#pragma once

// A loaded artifact (Model) and one conversation on it (Session).

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/signing/signer_key.h"
#include "formats/status.h"
#include "runtime/engine.h"
#include "runtime/executor/kv_type.h"
#include "runtime/memory/placement.h"
#include "runtime/session/pooling.h"
#include "runtime/session/profile.h"
#include "runtime/session/session_state.h"

namespace cortiq::runtime {

class Executor; // runtime/executor
class GpuModel; // runtime/vulkan

/// How to load an artifact. Everything absent has a default taken from the artifact and the machine.
struct LoadOptions {
  bool verify_weights = false; ///< check the hash of every leaf of the weights
  /// Whoever has to have signed the artifact; every hash is checked then, too.
  std::optional<formats::SignerKey> require_key = std::nullopt;
  std::optional<uint64_t> fill_seed =
      std::nullopt; ///< for artifacts without weights: fill them with valid random blocks
  /// Bytes that weights, caches and work space of all sessions may take; 0: no limit. Experts that do not fit are read
  /// from the file as they are needed.
  uint64_t memory = 0;
  std::string target = {};  ///< which of an artifact's targets to run; empty: the best that this machine can
  Placement placement = {}; ///< of the weights; with a budget they stay where they are mapped
};

struct SessionOptions {
  unsigned threads = 0;                          ///< 0: min(affinity, cgroup quota, useful cores)
  std::optional<KvType> kv = std::nullopt;       ///< cache element type
  uint64_t max_context = 0;                      ///< 0: what the artifact was compiled for
  bool profile = false;                          ///< keep times for profile()
  Placement placement = {};                      ///< of caches, work space and workers
  std::shared_ptr<const GpuModel> gpu = nullptr; ///< runs what it can; null = the CPU runs all
  bool cpu_fallback =
      false; ///< goes on without the GPU when that fails, on the CPU from the beginning of the tokens held
  /// Those of another session of the model with the same options, which never runs at the same time; null = its own.
  std::shared_ptr<Executor> workers = nullptr;
};

/// What the manifest says, for people and for tools.
struct ModelInfo {
  std::string architecture, name, compiler_version, target, options, source_name;
  std::string text_absent;          ///< why there is no tokenizer; may be empty
  std::vector<std::string> targets; ///< all that the artifact holds code for
  std::string target_reason;        ///< why `target` was taken; empty when there is no other
  std::vector<std::string> features;
  bool exact = false;
  bool kv_f16 = false;
  uint64_t hidden = 0, layers = 0, vocab = 0, token_count = 0;
  uint64_t max_context = 0, trained_context = 0, max_batch = 0;
  uint64_t weight_bytes = 0;
};

struct LoadedArtifact; // runtime/loader
struct OverlayState;   // runtime/overlay

/// A mapped, checked and resolved artifact. Immutable and shared by its sessions.
class Model {
public:
  /// Maps and checks `path`. Fails in one sentence for a damaged or foreign file, and for CPU features that this
  /// machine lacks or its operating system has not enabled.
  static StatusOr<std::shared_ptr<const Model>> load(const std::string& path, const LoadOptions& options = {});
  ~Model();

  const ModelInfo& info() const { return info_; }
  /// The tokenizer section as the compiler stored it; empty when the model has none.
  std::span<const uint8_t> tokenizer() const;
  const LoadedArtifact& artifact() const { return *artifact_; }

  /// The skills and task masks to choose from.
  const formats::OverlayCatalog& overlay() const;
  /// What a selection of overlay() means for the program; null where there is nothing to choose from. Sessions share a
  /// state as long as one of them has it. May be called from any thread.
  StatusOr<std::shared_ptr<const OverlayState>> overlay_state(const formats::OverlaySelection& selection) const;

private:
  Model() = default;
  ModelInfo info_;
  std::unique_ptr<LoadedArtifact> artifact_;
  mutable std::mutex states_mutex_;
  mutable std::vector<std::weak_ptr<const OverlayState>> states_; ///< those in use
};

/// One conversation: key/value state, arena and worker threads. set_overlay() may be called from any thread, also while
/// forward() runs: the next step, and every one after it, works under the new selection as a whole. All else is for one
/// thread.
class Session : public Engine {
public:
  static StatusOr<std::unique_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                   const SessionOptions& options = {});

  /// Runs a program that has no embedding (a one-kernel artifact): `input` goes into the first call's input slot, one
  /// row of [tokens x elements] a token. Returns the logits slot, row-major [tokens x vocab], valid until the next
  /// call.
  virtual StatusOr<std::span<const float>> run_vectors(std::span<const float> input, uint64_t tokens) = 0;
  StatusOr<std::span<const float>> run_vector(std::span<const float> input) { return run_vectors(input, 1); }

  /// append() of `token`, after which only the id of the largest logit is wanted: a GPU chooses it and sends no logits.
  virtual StatusOr<uint32_t> largest(uint32_t token) = 0;

  /// One vector for `tokens`, from an empty state, under the selection in force: of the last hidden states, normed as
  /// the head reads them (in the fast arm rounded to 8 bits), their mean or the last one. The state is empty
  /// afterwards. Fails for a program without such states, and on a GPU, which keeps them.
  virtual StatusOr<std::vector<float>> embed(std::span<const uint32_t> tokens, Pooling pooling) = 0;

  /// The selection under which the latest step ran.
  virtual formats::OverlaySelection latest_overlay() const = 0;

  /// The selection that the next step will run under.
  virtual formats::OverlaySelection selection() const = 0;

  virtual const Model& model() const = 0;
  /// What it holds, for reading. Fails for a session on a GPU.
  virtual StatusOr<SessionState> state() = 0;
  /// Forgets everything, and gives room for the state behind `position` tokens, whose caches had been written up to
  /// `furthest`. Once that is filled, adopt() makes the session hold it; until then it is to be reset().
  virtual StatusOr<SessionState> make_room(uint64_t position, uint64_t furthest) = 0;
  /// `turns` is as in SessionState.
  virtual void adopt(std::span<const uint32_t> tokens, uint64_t furthest, std::span<const uint64_t> turns) = 0;

  /// Threads that work on a step, the caller's included.
  virtual unsigned threads() const = 0;
  /// For SessionOptions of sessions that take turns with this one.
  virtual std::shared_ptr<Executor> workers() const = 0;
  virtual KvType kv_type() const = 0;
  /// Bytes of key/value cache, arena and scratch that are reserved (resident only as they are touched).
  virtual uint64_t reserved_bytes() const = 0;

  /// With SessionOptions::profile: where the time of steps went since the session began or reset_profile().
  virtual Profile profile() const = 0;
  /// Forgets what was measured; the events of the next `traced_steps` steps are kept for profile().
  virtual void reset_profile(uint64_t traced_steps) = 0;
};

} // namespace cortiq::runtime

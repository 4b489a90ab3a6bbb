#include "runtime/session/session.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "formats/checked_math.h"
#include "runtime/cpu/limits.h"
#include "runtime/executor/executor.h"
#include "runtime/loader/load.h"
#include "runtime/overlay/overlay.h"
#include "runtime/session/draft_memory.h"
#include "runtime/session/recurrent_memory.h"
#include "runtime/session/reserved_memory.h"
#include "runtime/session/rope_state.h"
#include "runtime/session/token_origins.h"
#include "runtime/vulkan/gpu.h"

namespace cortiq::runtime {
namespace {

// Logits of many positions at once need room: larger batches gain nothing then.
constexpr uint64_t kPreferredBatch = 256;

class ArtifactSession final : public Session {
public:
  static StatusOr<std::unique_ptr<Session>> make(std::shared_ptr<const Model> model, const SessionOptions& options) {
    if (options.gpu && options.kv && *options.kv != options.gpu->kv_type())
      return invalid(std::string("the GPU was given the model with keys and values in ") +
                     kv_type_name(options.gpu->kv_type()) + ", the session asks for " + kv_type_name(*options.kv));
    std::unique_ptr<ArtifactSession> session(new ArtifactSession(std::move(model), options));
    CORTIQ_RETURN_IF_ERROR(session->reserve());
    if (options.gpu) {
      CORTIQ_ASSIGN_OR_RETURN(session->gpu_, options.gpu->session(session->kv_positions_, options.profile));
    }
    CORTIQ_RETURN_IF_ERROR(session->set_overlay({{}, session->overlay().default_mask()}));
    return std::unique_ptr<Session>(std::move(session));
  }

  ~ArtifactSession() override {
    if (budgeted_ != 0)
      model_->artifact().memory->give_back(budgeted_);
  }

  uint64_t vocab() const override { return program_.logits.elements; }
  uint64_t max_context() const override { return max_context_; }
  uint64_t position() const override { return position_; }
  uint64_t preferred_batch() const override {
    return on_gpu_ ? program_.max_batch : std::min(program_.max_batch, kPreferredBatch);
  }
  void rewind(uint64_t position) override {
    position_ = std::min(position, position_);
    drafts_.rewind(position_);
  }
  bool can_draft() const override { return program_.draft_logits.present && !on_gpu_; }
  void keep_drafts(bool keep) override { keep_drafts_ = keep && can_draft(); }
  unsigned threads() const override { return executor_->threads(); }
  KvType kv_type() const override { return kv_type_; }
  std::shared_ptr<Executor> workers() const override { return executor_; }
  uint64_t reserved_bytes() const override {
    return arena_.bytes() + kv_.bytes() + recurrent_.reserved_bytes() + (own_workers_ ? executor_->scratch_bytes() : 0);
  }

  StatusOr<std::span<const float>> forward(std::span<const uint32_t> tokens, bool all_logits) override {
    return extend(tokens, Origin::kPrompt, all_logits);
  }
  StatusOr<std::span<const float>> append(uint32_t token) override {
    return extend({&token, 1}, Origin::kGenerated, false);
  }

  StatusOr<std::span<const float>> verify(uint32_t token, uint32_t guess) override {
    const uint32_t tokens[] = {token, guess};
    if (!can_draft() || program_.max_batch < 2)
      return extend(tokens, Origin::kGenerated, true);
    CORTIQ_RETURN_IF_ERROR(check_tokens(tokens));
    CORTIQ_RETURN_IF_ERROR(catch_up());
    recurrent_.begin_guess(position_);
    keep_states_ = true;
    const StatusOr<std::span<const float>> logits = run(tokens, Origin::kGenerated, true);
    keep_states_ = false;
    if (logits.ok())
      recurrent_.commit_guess(tokens);
    return logits;
  }

  std::span<const float> draft(uint32_t next) override {
    if (!keep_drafts_ || next >= program_.embedding_rows || !run_drafts(next, true))
      return {};
    return {program_.draft_logits.f32(arena_.data(), draft_row_), vocab()};
  }

  StatusOr<std::span<const float>> run_vectors(std::span<const float> input, uint64_t tokens) override {
    if (program_.embedding_rows != 0 || !program_.input.present)
      return invalid("this artifact takes tokens, not vectors");
    if (tokens == 0 || tokens > program_.max_batch || input.size() != tokens * program_.input.elements)
      return invalid("the input has " + std::to_string(input.size()) + " values, the artifact takes rows of " +
                     std::to_string(program_.input.elements) + ", at most " + std::to_string(program_.max_batch));
    for (uint64_t t = 0; t < tokens; ++t) {
      float* row = program_.input.f32(arena_.data(), t);
      std::memcpy(row, input.data() + t * program_.input.elements, program_.input.elements * sizeof(float));
      std::fill(row + program_.input.elements, row + (program_.input.elements + 15) / 16 * 16, 0.0f);
    }
    position_ = recurrent_.restore(0);
    CORTIQ_RETURN_IF_ERROR(step({}, tokens, Origin::kPrompt, 0, tokens));
    collected_.resize(tokens * vocab());
    for (uint64_t t = 0; t < tokens; ++t)
      std::memcpy(collected_.data() + t * vocab(), program_.logits.f32(arena_.data(), t), vocab() * sizeof(float));
    return std::span<const float>(collected_);
  }

  bool can_top() const override { return gpu_ && gpu_->can_top(); }
  void want_top(const std::optional<TopAsk>& ask) override { top_ask_ = ask; }
  const TopLogits* top() const override { return top_ ? &*top_ : nullptr; }
  StatusOr<std::span<const float>> whole_row() override {
    top_.reset();
    if (!gpu_)
      return unsupported("the GPU that has the row is gone");
    CORTIQ_RETURN_IF_ERROR(gpu_->fetch_row(arena_.data(), top_row_));
    return std::span<const float>(program_.logits.f32(arena_.data(), top_row_), vocab());
  }

  StatusOr<uint32_t> largest(uint32_t token) override {
    if (can_top())
      return largest_of_top(token);
    want_ = gpu_ && gpu_->can_pick() ? GpuSession::Want::kIds : GpuSession::Want::kLogits;
    const StatusOr<std::span<const float>> logits = append(token);
    const bool picked = want_ == GpuSession::Want::kIds && gpu_;
    want_ = GpuSession::Want::kLogits;
    if (!logits.ok())
      return logits.status();
    if (picked)
      return gpu_->picked(0);
    return static_cast<uint32_t>(std::max_element(logits->begin(), logits->end()) - logits->begin());
  }

  const formats::OverlayCatalog& overlay() const override { return model_->overlay(); }

  Status set_overlay(const formats::OverlaySelection& selection) override {
    CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<const OverlayState> state, model_->overlay_state(selection));
    std::lock_guard lock(overlay_mutex_);
    wanted_overlay_ = std::move(state);
    return {};
  }

  formats::OverlaySelection latest_overlay() const override {
    return overlay_ ? overlay_->selection : formats::OverlaySelection();
  }

  formats::OverlaySelection selection() const override {
    std::lock_guard lock(overlay_mutex_);
    return wanted_overlay_ ? wanted_overlay_->selection : formats::OverlaySelection();
  }

  const Model& model() const override { return *model_; }

  StatusOr<SessionState> state() override {
    CORTIQ_RETURN_IF_ERROR(check_movable());
    CORTIQ_RETURN_IF_ERROR(catch_up());
    return describe_state(position_, recurrent_.furthest(position_));
  }

  StatusOr<SessionState> make_room(uint64_t position, uint64_t furthest) override {
    CORTIQ_RETURN_IF_ERROR(check_movable());
    reset();
    recurrent_.lose();
    return describe_state(position, furthest);
  }

  void adopt(std::span<const uint32_t> tokens, uint64_t furthest, std::span<const uint64_t> turns) override {
    position_ = tokens.size();
    origins_.adopt(turns, tokens.size());
    recurrent_.adopt(tokens, furthest);
  }

  StatusOr<formats::ResidualMeans> residual_means(std::span<const uint32_t> tokens) override {
    reset();
    std::vector<std::vector<double>> sums;
    std::vector<double*> taps;
    for (const ResidualTap& tap : program_.taps)
      taps.push_back(sums.emplace_back(tap.elements).data());
    CORTIQ_ASSIGN_OR_RETURN(probe_overlay_, model_->overlay_state({{}, overlay().fixed_mask()}));
    taps_ = taps.data();
    const Status status = forward(tokens, false).status();
    taps_ = nullptr;
    probe_overlay_.reset();
    reset();
    CORTIQ_RETURN_IF_ERROR(status);
    formats::ResidualMeans means;
    for (size_t i = 0; i < sums.size(); ++i)
      for (const double sum : sums[i])
        means[program_.taps[i].layer].push_back(static_cast<float>(sum / static_cast<double>(tokens.size())));
    return means;
  }

  StatusOr<std::vector<float>> embed(std::span<const uint32_t> tokens, Pooling pooling) override {
    const HiddenRows& hidden = model_->artifact().hidden;
    if (!hidden.slot.present || on_gpu_)
      return unsupported(
          on_gpu_ ? "a session on a GPU gives no embeddings"
                  : "this model's program does not show its last hidden state, of which embeddings are made");
    reset();
    CORTIQ_RETURN_IF_ERROR(check_tokens(tokens));
    CORTIQ_RETURN_IF_ERROR(catch_up());
    recurrent_.begin(position_, tokens.size());
    std::vector<double> sum(hidden.slot.elements);
    Status status;
    end_stage_ = hidden.end_stage;
    for (uint64_t done = 0; done < tokens.size() && status.ok();) {
      const uint64_t count = std::min(program_.max_batch, tokens.size() - done);
      const bool last = done + count == tokens.size();
      const uint64_t rows = pooling == Pooling::kMean ? count : last ? 1 : 0;
      status = step(tokens.subspan(done, count), count, Origin::kPrompt, count - rows, rows);
      for (uint64_t t = count - rows; t < count && status.ok(); ++t)
        add_hidden_row(hidden, arena_.data(), t, sum);
      done += count;
    }
    end_stage_ = UINT32_MAX;
    recurrent_.lose();
    reset();
    CORTIQ_RETURN_IF_ERROR(status);
    std::vector<float> out;
    for (const double value : sum)
      out.push_back(static_cast<float>(value / (pooling == Pooling::kMean ? static_cast<double>(tokens.size()) : 1)));
    return out;
  }

  Profile profile() const override {
    Profile out = make_profile(executor_->profiler(), threads());
    if (gpu_)
      gpu_->add_profile(out);
    return out;
  }
  void reset_profile(uint64_t traced_steps) override {
    if (gpu_)
      gpu_->reset_profile();
    if (Profiler* profiler = executor_->profiler())
      profiler->reset(traced_steps);
  }
  /// With a budget and a model of experts: how they were served since the model was loaded.
  std::string report() override {
    const ExpertStore* experts = model_->artifact().experts.get();
    std::string out = experts ? describe(*experts) : std::string();
    if (gpu_) {
      const GpuCounts counts = gpu_->counts();
      out += "GPU: " + std::to_string(counts.steps) + " steps, " + std::to_string(counts.dispatches) +
             " dispatches behind " + std::to_string(counts.barriers) +
             " barriers; stages run on the CPU in between: " + std::to_string(counts.cpu_stages) +
             (counts.matrices != 0 ? "; on cooperative matrices: " + std::to_string(counts.matrices) : "") + "\n";
    }
    if (gpu_)
      out += gpu_->report();
    return gpu_note_.empty() ? out : out + gpu_note_ + "\n";
  }

private:
  StatusOr<std::span<const float>> extend(std::span<const uint32_t> tokens, Origin origin, bool all_logits) {
    CORTIQ_RETURN_IF_ERROR(check_tokens(tokens));
    CORTIQ_RETURN_IF_ERROR(catch_up());
    CORTIQ_RETURN_IF_ERROR(bring_states(tokens.size()));
    recurrent_.begin(position_, tokens.size());
    CORTIQ_ASSIGN_OR_RETURN(const std::span<const float> logits, run(tokens, origin, all_logits));
    CORTIQ_RETURN_IF_ERROR(bring_states(tokens.size()));
    recurrent_.commit(tokens);
    return logits;
  }

  StatusOr<uint32_t> largest_of_top(uint32_t token) {
    top_ask_ = TopAsk{1, static_cast<uint32_t>(vocab())};
    StatusOr<std::span<const float>> logits = append(token);
    top_ask_.reset();
    if (!logits.ok())
      return logits.status();
    if (top_) {
      size_t best = 0; // of equal ones the lowest id
      for (size_t i = 1; i < top_->values.size(); ++i)
        if (top_->values[i] > top_->values[best] ||
            (top_->values[i] == top_->values[best] && top_->ids[i] < top_->ids[best]))
          best = i;
      if (!top_->values.empty() && top_->values[best] > top_->rest)
        return top_->ids[best];
      logits = whole_row();
      if (!logits.ok())
        return logits.status();
    }
    return static_cast<uint32_t>(std::max_element(logits->begin(), logits->end()) - logits->begin());
  }

  ArtifactSession(std::shared_ptr<const Model> model, const SessionOptions& options)
      : model_(std::move(model)), program_(model_->artifact().program),
        kv_type_(options.kv.value_or(model_->info().kv_f16 ? KvType::kF16 : KvType::kF32)),
        max_context_(options.max_context != 0 ? options.max_context : model_->info().max_context),
        rope_(program_.rope_tables, program_.max_batch), own_workers_(!options.workers),
        executor_(options.workers
                      ? options.workers
                      : std::make_shared<Executor>(
                            program_, options.threads != 0 ? options.threads : default_threads(read_cpu_limits()),
                            options.profile, options.placement)),
        placement_(options.placement), on_gpu_(options.gpu != nullptr), cpu_fallback_(options.cpu_fallback) {}

  /// Arena and cache, as address space only.
  Status reserve() {
    if (max_context_ > model_->info().max_context)
      return invalid("a context of " + std::to_string(max_context_) + " positions exceeds the " +
                     std::to_string(model_->info().max_context) +
                     " that the artifact was compiled for; compile it with --max-context " +
                     std::to_string(max_context_));
    kv_positions_ = (max_context_ + kPositionBlock - 1) / kPositionBlock * kPositionBlock;
    std::optional<uint64_t> total = 0;
    std::vector<uint64_t> offsets;
    std::optional<uint64_t> ring_slack;
    for (const KvShape& layer : program_.kv_layers) {
      const uint64_t positions = layer.capacity(kv_positions_);
      if (positions < kv_positions_) // the next query needs window - 1 positions of the ring
        ring_slack = std::min(ring_slack.value_or(positions), positions - (layer.window - 1));
      for (const uint64_t bytes : {layer.key_group_bytes(kv_type_), 16 * layer.value_row_bytes(kv_type_)}) {
        offsets.push_back(*total); // of 16 positions of a head: multiples of 64
        total = formats::checked_add(total, formats::checked_mul(formats::checked_mul(layer.kv_heads, bytes),
                                                                 formats::checked_mul(positions / 16, uint64_t{1})));
        if (!total || *total > (uint64_t{1} << 46))
          return io_error("a cache of " + std::to_string(max_context_) + " positions does not fit the address space");
      }
    }
    kv_ = ReservedMemory(*total, placement_);
    arena_ = ReservedMemory(program_.arena_bytes, program_.work_space(placement_));
    if (kv_.bytes() != *total || arena_.bytes() != program_.arena_bytes ||
        (own_workers_ && !executor_->reserve(kv_positions_)))
      return io_error("there is no address space for " + std::to_string(*total + program_.arena_bytes) +
                      " bytes of cache and arena; use a smaller --max-context");
    for (size_t i = 0; i < offsets.size(); i += 2)
      layers_.push_back({kv_.data() + offsets[i], kv_.data() + offsets[i + 1]});
    CORTIQ_RETURN_IF_ERROR(recurrent_.reserve(program_.states, ring_slack, can_draft()));
    if (MemoryBudget* memory = model_->artifact().memory.get()) {
      CORTIQ_RETURN_IF_ERROR(memory->take(reserved_bytes()));
      budgeted_ = reserved_bytes();
    }
    if (ExpertStore* experts = model_->artifact().experts.get())
      experts_ = std::make_unique<ExpertStep>(*experts);
    return {};
  }

  /// Whether the state can be copied out and in.
  Status check_movable() const {
    if (program_.embedding_rows == 0)
      return invalid("this artifact takes vectors, not tokens: there is no session to save");
    if (on_gpu_)
      return unsupported("a session on a GPU can be neither saved nor loaded; give --device none");
    return {};
  }

  SessionState describe_state(uint64_t position, uint64_t furthest) const {
    SessionState out;
    out.position = position;
    out.furthest = furthest;
    out.kv_type = kv_type_;
    out.layers = program_.kv_layers;
    out.place = [this](uint64_t layer, uint64_t head, uint64_t group) {
      const KvShape& shape = program_.kv_layers[layer];
      const uint64_t positions = shape.capacity(kv_positions_);
      group %= positions / kKvGroupPositions;
      return KvGroupPlace{layers_[layer].keys + head * shape.key_bytes(kv_type_, positions) +
                              group * shape.key_group_bytes(kv_type_),
                          layers_[layer].values + head * shape.value_bytes(kv_type_, positions) +
                              group * kKvGroupPositions * shape.value_row_bytes(kv_type_)};
    };
    out.turns = origins_.turns(position);
    out.state_sizes = program_.states;
    out.states = recurrent_.states();
    return out;
  }

  Status check_tokens(std::span<const uint32_t> tokens) const {
    if (tokens.empty())
      return invalid("there is no token to run");
    if (program_.embedding_rows == 0)
      return invalid("this artifact takes vectors, not tokens");
    if (tokens.size() > max_context_ - position_)
      return invalid(std::to_string(position_ + tokens.size()) + " tokens do not fit the context of " +
                     std::to_string(max_context_));
    for (const uint32_t id : tokens)
      if (id >= program_.embedding_rows)
        return invalid("token id " + std::to_string(id) + " is outside the vocabulary of " +
                       std::to_string(program_.embedding_rows));
    return {};
  }

  /// The tokens of one call, in batches; after a failure the state is as before.
  StatusOr<std::span<const float>> run(std::span<const uint32_t> tokens, Origin origin, bool all_logits) {
    const uint64_t start = position_;
    if (all_logits)
      collected_.resize(tokens.size() * vocab());
    std::span<const float> logits;
    for (uint64_t done = 0; done < tokens.size();) {
      const uint64_t count = std::min(program_.max_batch, tokens.size() - done);
      const bool last = done + count == tokens.size();
      const uint64_t heads = all_logits ? count : last ? 1 : 0;
      if (Status status = step_or_leave(tokens.subspan(done, count), origin, count - heads, heads); !status.ok()) {
        rewind(start);
        recurrent_.lose();
        return status;
      }
      if (all_logits)
        for (uint64_t t = 0; t < count; ++t)
          std::memcpy(collected_.data() + (done + t) * vocab(), program_.logits.f32(arena_.data(), t),
                      vocab() * sizeof(float));
      else
        logits = {program_.logits.f32(arena_.data(), count - 1), vocab()};
      done += count;
    }
    return all_logits ? std::span<const float>(collected_) : logits;
  }

  /// step(), once more on the CPU when the GPU fails and that was asked for.
  Status step_or_leave(std::span<const uint32_t> tokens, Origin origin, uint64_t head_first, uint64_t head_count) {
    Status status = step(tokens, tokens.size(), origin, head_first, head_count);
    if (status.ok() || !gpu_ || !gpu_->failed())
      return status;
    if (!cpu_fallback_)
      return io_error(status.message() + "; with --fallback=cpu the CPU goes on");
    CORTIQ_RETURN_IF_ERROR(leave_gpu(status));
    return step(tokens, tokens.size(), origin, head_first, head_count);
  }

  /// Goes on without the GPU: what the session holds is run once more, by the CPU.
  Status leave_gpu(const Status& why) {
    gpu_.reset();
    gpu_note_ = why.message() + "; the CPU went on from here";
    const std::vector<uint32_t> held = std::move(held_);
    const uint64_t target = position_;
    position_ = recurrent_.restore(0);
    while (position_ < target) {
      const auto [origin, count] = next_again(target);
      CORTIQ_RETURN_IF_ERROR(step(std::span(held).subspan(position_, count), count, origin, count, 0));
    }
    return {};
  }

  /// Of the tokens from position_ to `target`, which run once more, those that go together.
  TokenOrigins::Run next_again(uint64_t target) const {
    return origins_.run(position_, std::min(program_.max_batch, target - position_));
  }

  /// Copies of states are made around batches of many tokens: the host has to have them then.
  Status bring_states(uint64_t count) {
    return gpu_ && count > 1 ? gpu_->bring_states(recurrent_.states(), position_) : Status();
  }

  // After a rewind, or a step that failed: recurrent states start again from the nearest copy, and the tokens from
  // there to the present position run once more. Their keys and values are written again as they were.
  Status catch_up() {
    if (recurrent_.at(position_))
      return {};
    const uint64_t target = position_;
    position_ = recurrent_.restore(target);
    while (position_ < target) {
      const auto [origin, count] = next_again(target);
      const Status status = step_or_leave(recurrent_.tokens().subspan(position_, count), origin, count, 0);
      if (!status.ok()) {
        position_ = target;
        recurrent_.lose();
        return status;
      }
    }
    recurrent_.caught_up(target);
    return {};
  }

  Status step(std::span<const uint32_t> tokens, uint64_t count, Origin origin, uint64_t head_first,
              uint64_t head_count) {
    // What the block that guesses needs of the latest step, before this one takes its place in the arena.
    if (keep_drafts_ && !tokens.empty())
      static_cast<void>(run_drafts(tokens.front(), false));
    drafts_.lose_rows();
    recurrent_.write(position_ + count);
    StepContext context = make_context(tokens.data(), position_, count);
    context.prompt = origin == Origin::kPrompt ? count : 0;
    context.taps = taps_;
    context.end_stage = end_stage_;
    context.stream = keep_drafts_;
    if (keep_states_)
      context.kept_states = recurrent_.kept_states();
    CORTIQ_RETURN_IF_ERROR(execute(context, count, head_first, head_count));
    if (keep_drafts_) {
      drafts_.ran(position_, tokens.first(count));
      drafts_prompt_ = context.prompt;
    }
    origins_.note(position_, count, origin);
    if (gpu_ && cpu_fallback_) {
      held_.resize(position_);
      held_.insert(held_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    }
    position_ += count;
    return {};
  }

  /// Runs the block that guesses on what the latest step left, `next` being the token behind it; with the logits of the
  /// last one when `head`. False when there was nothing to run, or it failed: a guess less.
  bool run_drafts(uint32_t next, bool head) {
    const std::optional<DraftRun> run = drafts_.run(position_, next);
    if (!run)
      return false;
    StepContext context = make_context(run->follow.data(), run->position, run->first + run->count);
    context.draft = true;
    context.first = run->first;
    context.prompt = drafts_prompt_;
    draft_row_ = run->first + run->count - 1;
    const Status status = execute(context, run->count, draft_row_, head ? 1 : 0);
    drafts_.covered();
    return status.ok();
  }

  StepContext make_context(const uint32_t* tokens, uint64_t position, uint64_t count) {
    rope_.fill(0, position, count);
    take_overlay();
    StepContext context{arena_.data(), tokens,          position,      kv_type_,      kv_positions_,
                        layers_,       rope_.cosines(), rope_.sines(), &kv_overflow_, recurrent_.states()};
    context.overlay = overlay_.get();
    context.experts = experts_.get();
    return context;
  }

  Status execute(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count) {
    kv_overflow_.store(0, std::memory_order_relaxed);
    top_.reset();
    if (experts_)
      experts_->begin(count);
    if (gpu_) {
      auto run_stages = [&](const StepContext& step, uint32_t first, uint32_t stages) {
        StepContext part = step_part(step, first, stages);
        executor_->step(part, count, head_first, head_count);
      };
      const bool brief = top_ask_ && head_count == 1 && want_ == GpuSession::Want::kLogits && gpu_->can_top();
      if (brief)
        gpu_->ask_top(*top_ask_);
      CORTIQ_RETURN_IF_ERROR(
          gpu_->step(context, count, head_first, head_count, brief ? GpuSession::Want::kTop : want_, run_stages));
      if (brief) {
        top_ = gpu_->top();
        top_row_ = head_first;
      }
      kv_overflow_.fetch_or(gpu_->overflowed_layer(), std::memory_order_relaxed);
    } else {
      executor_->step(context, count, head_first, head_count);
    }
    if (experts_)
      CORTIQ_RETURN_IF_ERROR(experts_->end());
    if (const uint32_t layer = kv_overflow_.load(std::memory_order_relaxed); layer != 0)
      return unsupported("layer " + std::to_string(layer - 1) + ": a key or value is not finite" +
                         (kv_type_ == KvType::kF16 ? " or beyond 65504, the largest number of the f16 cache" : "") +
                         "; use --kv f32");
    return {};
  }

  static StepContext step_part(const StepContext& context, uint32_t first, uint32_t stages) {
    StepContext part = context;
    part.first_stage = first;
    part.end_stage = first + stages;
    return part;
  }

  void take_overlay() {
    std::lock_guard lock(overlay_mutex_);
    overlay_ = probe_overlay_ ? probe_overlay_ : wanted_overlay_;
  }

  std::shared_ptr<const Model> model_;
  const ResolvedProgram& program_;
  KvType kv_type_;
  uint64_t max_context_;
  uint64_t kv_positions_ = 0;
  uint64_t position_ = 0;
  ReservedMemory arena_, kv_;
  std::vector<KvLayerState> layers_;
  RecurrentMemory recurrent_;
  DraftMemory drafts_;
  bool keep_drafts_ = false, keep_states_ = false;
  uint64_t draft_row_ = 0;     ///< of the latest draft's logits
  uint64_t drafts_prompt_ = 0; ///< rows of the latest step that are a prompt's
  RopeState rope_;
  std::atomic<uint32_t> kv_overflow_{0};
  std::unique_ptr<ExpertStep> experts_; // of a model with a budget
  uint64_t budgeted_ = 0;
  mutable std::mutex overlay_mutex_;
  std::shared_ptr<const OverlayState> wanted_overlay_; // guarded by the mutex
  std::shared_ptr<const OverlayState> overlay_, probe_overlay_;
  double* const* taps_ = nullptr;
  uint32_t end_stage_ = UINT32_MAX; ///< before which steps end
  std::vector<float> collected_;    // logits of several positions, side by side
  const bool own_workers_;
  const std::shared_ptr<Executor> executor_;
  Placement placement_;
  std::unique_ptr<GpuSession> gpu_; ///< null: the CPU runs everything
  bool on_gpu_ = false, cpu_fallback_ = false;
  std::vector<uint32_t> held_; ///< with a fallback: the tokens of the state
  TokenOrigins origins_;
  GpuSession::Want want_ = GpuSession::Want::kLogits;
  std::optional<TopAsk> top_ask_;
  std::optional<TopLogits> top_; ///< of the latest step, in place of its row of logits
  uint64_t top_row_ = 0;
  std::string gpu_note_; ///< why the GPU was left
};

} // namespace

StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Model> model, const SessionOptions& options) {
  return ArtifactSession::make(std::move(model), options);
}

} // namespace cortiq::runtime

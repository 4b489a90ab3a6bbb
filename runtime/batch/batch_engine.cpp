#include "runtime/batch/batch_engine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "formats/checked_math.h"
#include "runtime/batch/page_cache.h"
#include "runtime/batch/session_batch.h"
#include "runtime/cpu/limits.h"
#include "runtime/executor/executor.h"
#include "runtime/loader/load.h"
#include "runtime/overlay/overlay.h"
#include "runtime/session/reserved_memory.h"
#include "runtime/session/rope_state.h"

namespace cortiq::runtime {
namespace {

// Of the machine's memory, for the cache, unless it is said.
constexpr uint64_t kMemoryShare = 4;
constexpr uint64_t kMostSequences = 1 << 12;
constexpr uint64_t kMostBytes = uint64_t{1} << 46;
// Selections whose beginnings are known; blends can be without number.
constexpr size_t kMostRoots = 256;

class ArtifactBatch final : public BatchEngine {
public:
  ArtifactBatch(std::shared_ptr<const Model> model, const BatchOptions& options)
      : model_(std::move(model)), program_(model_->artifact().program),
        kv_type_(options.kv.value_or(model_->info().kv_f16 ? KvType::kF16 : KvType::kF32)),
        max_context_(options.max_context != 0 ? options.max_context : model_->info().max_context),
        rope_(program_.rope_tables, program_.max_batch),
        executor_(program_, options.threads != 0 ? options.threads : default_threads(read_cpu_limits()),
                  options.profile, options.placement),
        open_(options.sequences) {}

  ~ArtifactBatch() override {
    if (budgeted_ != 0)
      model_->artifact().memory->give_back(budgeted_);
  }

  Status reserve(const BatchOptions& options) {
    if (options.sequences == 0 || options.sequences > kMostSequences)
      return invalid("a batch of " + std::to_string(options.sequences) + " sequences; it has 1 to " +
                     std::to_string(kMostSequences));
    if (program_.embedding_rows == 0)
      return invalid("this artifact takes vectors, not tokens");
    if (max_context_ > model_->info().max_context)
      return invalid("a context of " + std::to_string(max_context_) + " positions exceeds the " +
                     std::to_string(model_->info().max_context) +
                     " that the artifact was compiled for; compile it with --max-context " +
                     std::to_string(max_context_));
    CORTIQ_RETURN_IF_ERROR(lay_out_page());
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t pages, count_pages(options));
    CORTIQ_RETURN_IF_ERROR(lay_out_states(options.sequences));
    pages_ = ReservedMemory(pages * page_bytes_, options.placement);
    arena_ = ReservedMemory(program_.arena_bytes, program_.work_space(options.placement));
    const uint64_t positions = formats::ceil_div(max_context_, kPositionBlock) * kPositionBlock;
    if (pages_.bytes() != pages * page_bytes_ || arena_.bytes() != program_.arena_bytes ||
        !executor_.reserve(positions, std::min<uint64_t>(options.sequences, threads())))
      return io_error("there is no address space for " + std::to_string(pages * page_bytes_ + program_.arena_bytes) +
                      " bytes of cache and arena; use a smaller cache or context");
    cache_.emplace(static_cast<uint32_t>(pages));
    if (MemoryBudget* memory = model_->artifact().memory.get()) {
      const uint64_t bytes = pages_.bytes() + arena_.bytes() + states_.bytes() + executor_.scratch_bytes();
      CORTIQ_RETURN_IF_ERROR(memory->take(bytes));
      budgeted_ = bytes;
    }
    if (ExpertStore* experts = model_->artifact().experts.get())
      experts_ = std::make_unique<ExpertStep>(*experts);
    return {};
  }

  uint64_t vocab() const override { return program_.logits.elements; }
  uint64_t max_context() const override { return max_context_; }
  uint64_t max_batch() const override { return program_.max_batch; }
  uint64_t sequences() const override { return open_.size(); }
  unsigned threads() const override { return executor_.threads(); }
  Profile profile() const override { return make_profile(executor_.profiler(), threads()); }

  StatusOr<Sequence> open(const formats::OverlaySelection& selection, std::span<const uint32_t> prompt) override {
    if (const std::optional<Sequence> ended = ended_before(selection, prompt)) {
      open_[*ended].open = true;
      open_[*ended].ended = 0;
      return *ended;
    }
    CORTIQ_ASSIGN_OR_RETURN(const Sequence number, free_sequence());
    CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<const OverlayState> overlay, model_->overlay_state(selection));
    Held& held = open_[number];
    held.overlay = std::move(overlay);
    held.selection = selection;
    held.root = root_of(selection);
    held.open = true;
    clear_states(number);
    if (held.root && prompt.size() > 1)
      take_beginning(held, prompt.first(prompt.size() - 1));
    return number;
  }

  StatusOr<Sequence> fork(Sequence from) override {
    CORTIQ_ASSIGN_OR_RETURN(const Sequence number, free_sequence());
    const Held& source = open_[from];
    Held& held = open_[number];
    const uint64_t whole = source.tokens.size() / kPositionBlock;
    held = source;
    held.ended = 0;
    held.pages.resize(whole);
    held.places.resize(whole);
    for (const PageCache::Page page : held.pages)
      cache_->hold(page);
    held.known = std::min(held.known, whole);
    if (source.tokens.size() % kPositionBlock != 0 && !add_copy(held, source.pages[whole])) {
      drop(held);
      return io_error("no page of the cache is free");
    }
    for (size_t i = 0; i < program_.states.size(); ++i)
      std::memcpy(states_of(number)[i], states_of(from)[i], program_.states[i] * sizeof(float));
    return number;
  }

  void close(Sequence sequence) override {
    Held& held = open_[sequence];
    if (!program_.states.empty() && !held.broken && !held.tokens.empty() && !held.selection.blends()) {
      held.open = false; // states and all: a text that goes on from here goes on in it
      held.ended = ++clock_;
      return;
    }
    // The page behind the whole ones is of use to a text that goes on from there.
    const uint64_t whole = held.tokens.size() / kPositionBlock;
    if (held.root && !held.broken && held.known == whole && held.pages.size() > whole) {
      const std::span<const uint32_t> rest = std::span(held.tokens).subspan(whole * kPositionBlock);
      for (size_t i = held.pages.size(); i-- > whole + 1;) // taken for a step that failed
        cache_->release(held.pages[i]);
      if (rest.empty())
        cache_->release(held.pages[whole]);
      else
        cache_->remember(*held.root, whole == 0 ? PageCache::kNone : held.pages[whole - 1], rest, held.pages[whole]);
      held.pages.resize(whole);
    }
    drop(held);
  }

  uint64_t position(Sequence sequence) const override { return open_[sequence].tokens.size(); }
  bool compatible(Sequence a, Sequence b) const override { return open_[a].overlay == open_[b].overlay; }

  bool shares_beginnings() const override { return program_.states.empty(); }
  uint64_t known(const formats::OverlaySelection& selection, std::span<const uint32_t> prompt) const override {
    if (const std::optional<Sequence> ended = ended_before(selection, prompt))
      return position(*ended);
    for (size_t i = 0; i < selections_.size(); ++i)
      if (selections_[i] == selection && prompt.size() > 1)
        return cache_->known(static_cast<PageCache::Root>(i), prompt.first(prompt.size() - 1));
    return 0;
  }

  uint64_t pages_for(Sequence sequence, uint64_t tokens) const override {
    const Held& held = open_[sequence];
    const uint64_t pages = formats::ceil_div(held.tokens.size() + tokens, kPositionBlock);
    return pages - std::min<uint64_t>(pages, held.pages.size());
  }
  uint64_t pages_available() const override { return cache_->available() + ended_pages(); }
  BatchCacheState cache() const override {
    return {cache_->size(), page_bytes_, cache_->size() - pages_available(), cache_->idle() + ended_pages()};
  }

  StatusOr<std::span<const Result>> step(std::span<const Part> parts) override {
    CORTIQ_RETURN_IF_ERROR(check(parts));
    for (const Part& part : parts)
      CORTIQ_RETURN_IF_ERROR(add_pages(open_[part.sequence], part.tokens.size()));
    line_up(parts);
    execute();
    results_.clear();
    for (size_t i = 0; i < parts.size(); ++i)
      results_.push_back(finish(parts[i], i));
    return std::span<const Result>(results_);
  }

private:
  /// An open sequence, or one that ended and is kept for texts that go on from it.
  struct Held {
    bool open = false, broken = false;
    uint64_t ended = 0; ///< when; 0: it is open, or nothing is kept
    formats::OverlaySelection selection;
    std::shared_ptr<const OverlayState> overlay;
    std::optional<PageCache::Root> root; ///< none: its beginnings are not shared
    std::vector<uint32_t> tokens;
    std::vector<PageCache::Page> pages;
    std::vector<uint8_t*> places; ///< of the pages
    uint64_t known = 0;           ///< of its pages, those that the cache knows
  };
  /// A run of tokens of one part: a segment of the step.
  struct Run {
    size_t part;
    uint64_t first, count; ///< tokens of the part
  };

  /// Layers one after the other, in each the keys of all heads, then their values.
  Status lay_out_page() {
    std::optional<uint64_t> bytes = 0;
    for (const KvShape& layer : program_.kv_layers) {
      KvPageLayer place;
      place.key_offset = *bytes;
      bytes =
          formats::checked_add(bytes, formats::checked_mul(layer.kv_heads, layer.key_bytes(kv_type_, kPositionBlock)));
      place.value_offset = bytes.value_or(0);
      bytes = formats::checked_add(bytes,
                                   formats::checked_mul(layer.kv_heads, layer.value_bytes(kv_type_, kPositionBlock)));
      if (!bytes || *bytes > kMostBytes)
        return io_error("a page of the cache does not fit the address space");
      page_layers_.push_back(place);
    }
    page_bytes_ = std::max<uint64_t>(64, *bytes); // of a model without attention, pages are counted all the same
    return {};
  }

  StatusOr<uint64_t> count_pages(const BatchOptions& options) const {
    const uint64_t context = formats::ceil_div(max_context_, kPositionBlock);
    uint64_t pages = options.cache_bytes / page_bytes_;
    if (options.cache_bytes == 0) {
      const CpuLimits limits = read_cpu_limits();
      uint64_t memory =
          limits.memory_limit != 0 ? std::min(limits.memory_limit, limits.host_memory) : limits.host_memory;
      if (const MemoryBudget* budget = model_->artifact().memory.get())
        memory = std::min(memory, budget->total());
      pages = std::max(context, std::min(context * open_.size(), memory / kMemoryShare / page_bytes_));
    }
    if (pages < context)
      return invalid("a cache of " + std::to_string(options.cache_bytes) + " bytes holds no context of " +
                     std::to_string(max_context_) + " tokens, which takes " + std::to_string(context * page_bytes_));
    if (pages >= PageCache::kNone || pages > kMostBytes / page_bytes_)
      return invalid("a cache of " + std::to_string(options.cache_bytes) + " bytes does not fit the address space");
    return pages;
  }

  Status lay_out_states(uint64_t sequences) {
    std::optional<uint64_t> bytes = 0;
    std::vector<uint64_t> offsets;
    for (uint64_t sequence = 0; sequence < sequences; ++sequence)
      for (const uint64_t size : program_.states) {
        offsets.push_back(*bytes);
        bytes = formats::checked_add(bytes, formats::checked_mul(size, sizeof(float)));
        if (bytes)
          bytes = formats::checked_round_up(*bytes, uint64_t{64});
        if (!bytes || *bytes > kMostBytes)
          return io_error("the recurrent states do not fit the address space");
      }
    states_ = ReservedMemory(*bytes);
    if (states_.bytes() != *bytes)
      return io_error("there is no address space for " + std::to_string(*bytes) + " bytes of recurrent states");
    for (const uint64_t offset : offsets)
      state_places_.push_back(reinterpret_cast<float*>(states_.data() + offset));
    return {};
  }

  std::span<float* const> states_of(Sequence sequence) const {
    return std::span(state_places_).subspan(sequence * program_.states.size(), program_.states.size());
  }
  void clear_states(Sequence sequence) {
    for (size_t i = 0; i < program_.states.size(); ++i)
      std::memset(states_of(sequence)[i], 0, program_.states[i] * sizeof(float));
  }

  /// One that nothing is kept of, or the one that ended longest ago.
  StatusOr<Sequence> free_sequence() {
    Held* best = nullptr;
    for (Held& held : open_)
      if (!held.open && (!best || held.ended < best->ended))
        best = &held;
    if (!best)
      return io_error("all " + std::to_string(open_.size()) + " sequences are in use");
    drop(*best);
    return static_cast<Sequence>(best - open_.data());
  }

  void drop(Held& held) {
    cache_->release(held.pages);
    held = Held();
  }

  /// The ended sequence that holds the longest beginning of `prompt`, though not all of it.
  std::optional<Sequence> ended_before(const formats::OverlaySelection& selection,
                                       std::span<const uint32_t> prompt) const {
    std::optional<Sequence> best;
    for (size_t i = 0; i < open_.size(); ++i) {
      const Held& held = open_[i];
      if (!held.open && held.ended != 0 && held.tokens.size() < prompt.size() && held.selection == selection &&
          (!best || held.tokens.size() > position(*best)) &&
          std::equal(held.tokens.begin(), held.tokens.end(), prompt.begin()))
        best = static_cast<Sequence>(i);
    }
    return best;
  }

  /// Pages that nobody but ended sequences has.
  uint64_t ended_pages() const {
    std::map<PageCache::Page, uint32_t> holders;
    for (const Held& held : open_)
      if (!held.open)
        for (const PageCache::Page page : held.pages)
          ++holders[page];
    return static_cast<uint64_t>(std::count_if(holders.begin(), holders.end(), [&](const auto& entry) {
      return cache_->holders(entry.first) == entry.second;
    }));
  }

  /// A page, from a sequence that ended when nothing else is free.
  std::optional<PageCache::Page> take_page() {
    while (true) {
      if (const std::optional<PageCache::Page> page = cache_->take())
        return page;
      Held* oldest = nullptr;
      for (Held& held : open_)
        if (!held.open && held.ended != 0 && (!oldest || held.ended < oldest->ended))
          oldest = &held;
      if (!oldest)
        return std::nullopt;
      drop(*oldest);
    }
  }

  /// States cannot be shared as pages can: what was held before is of no use then.
  std::optional<PageCache::Root> root_of(const formats::OverlaySelection& selection) {
    if (!program_.states.empty())
      return std::nullopt;
    for (size_t i = 0; i < selections_.size(); ++i)
      if (selections_[i] == selection)
        return static_cast<PageCache::Root>(i);
    if (selections_.size() < kMostRoots) {
      selections_.push_back(selection);
      return cache_->add_root();
    }
    for (PageCache::Root root = 0; root < kMostRoots; ++root)
      if (cache_->empty(root) &&
          std::none_of(open_.begin(), open_.end(), [&](const Held& held) { return held.root == root; })) {
        selections_[root] = selection;
        return root;
      }
    return std::nullopt;
  }

  uint8_t* place_of(PageCache::Page page) const { return pages_.data() + page * page_bytes_; }

  void add_page(Held& held, PageCache::Page page) {
    held.pages.push_back(page);
    held.places.push_back(place_of(page));
  }

  void take_beginning(Held& held, std::span<const uint32_t> prompt) {
    const PageCache::Match found = cache_->find(*held.root, prompt);
    for (const PageCache::Page page : found.pages)
      add_page(held, page);
    held.known = found.pages.size();
    uint64_t tokens = held.known * kPositionBlock;
    if (found.partial != PageCache::kNone) {
      if (add_copy(held, found.partial))
        tokens += found.tokens;
      cache_->release(found.partial);
    }
    held.tokens.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(tokens));
  }

  bool add_copy(Held& held, PageCache::Page from) {
    const std::optional<PageCache::Page> page = take_page();
    if (!page)
      return false;
    std::memcpy(place_of(*page), place_of(from), page_bytes_);
    add_page(held, *page);
    return true;
  }

  Status check(std::span<const Part> parts) const {
    if (parts.empty())
      return invalid("there is no token to run");
    uint64_t tokens = 0, pages = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (part.sequence >= open_.size() || !open_[part.sequence].open || open_[part.sequence].broken)
        return invalid("sequence " + std::to_string(part.sequence) + " is not open");
      for (size_t k = 0; k < i; ++k)
        if (parts[k].sequence == part.sequence)
          return invalid("sequence " + std::to_string(part.sequence) + " is in the step twice");
      if (!compatible(parts[0].sequence, part.sequence))
        return invalid("the sequences of the step have different selections of the overlay");
      if (part.tokens.empty())
        return invalid("sequence " + std::to_string(part.sequence) + " has no token to run");
      const uint64_t end = position(part.sequence) + part.tokens.size();
      if (end > max_context_)
        return invalid(std::to_string(end) + " tokens do not fit the context of " + std::to_string(max_context_));
      for (const uint32_t id : part.tokens)
        if (id >= program_.embedding_rows)
          return invalid("token id " + std::to_string(id) + " is outside the vocabulary of " +
                         std::to_string(program_.embedding_rows));
      tokens += part.tokens.size();
      pages += pages_for(part.sequence, part.tokens.size());
    }
    if (tokens > program_.max_batch)
      return invalid("the step has " + std::to_string(tokens) + " tokens, it takes " +
                     std::to_string(program_.max_batch));
    if (pages > pages_available())
      return io_error("the step takes " + std::to_string(pages) + " pages of the cache, " +
                      std::to_string(pages_available()) + " are free");
    return {};
  }

  Status add_pages(Held& held, uint64_t tokens) {
    while (held.pages.size() * kPositionBlock < held.tokens.size() + tokens) {
      const std::optional<PageCache::Page> page = take_page();
      if (!page)
        return internal_error("pages of the cache that were free are not");
      add_page(held, *page);
    }
    return {};
  }

  /// The order of tokens in the batch. Those of prompts come first. The head runs on one range of them: tokens whose
  /// logits are wanted stand side by side where that can be. Of a prompt's part of several tokens the last one becomes
  /// a run of its own for it, but for the part that stands before them all. States go through their tokens in one go:
  /// such parts stay whole, and so do generated tokens that are computed again; the head also runs on what lies
  /// between.
  void line_up(std::span<const Part> parts) {
    std::vector<Run> silent, heads, answers, silent_answers;
    std::optional<size_t> before;
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint64_t count = parts[i].tokens.size();
      if (parts[i].generated)
        (parts[i].logits ? answers : silent_answers).push_back({i, 0, count});
      else if (!parts[i].logits)
        silent.push_back({i, 0, count});
      else if (count == 1)
        heads.push_back({i, 0, 1});
      else if (!before && program_.states.empty())
        before = i;
      else if (program_.states.empty())
        silent.push_back({i, 0, count - 1}), heads.push_back({i, count - 1, 1});
      else
        heads.insert(heads.begin(), {i, 0, count});
    }
    if (before)
      silent.push_back({*before, 0, parts[*before].tokens.size()});
    const size_t prompts = silent.size() + heads.size();
    for (const std::vector<Run>* more : {&heads, &answers, &silent_answers})
      silent.insert(silent.end(), more->begin(), more->end());
    tokens_.clear();
    segments_.clear();
    row_of_.assign(parts.size(), 0);
    overflows_.reset(new std::atomic<uint32_t>[silent.size()]());
    part_of_.clear();
    head_first_ = UINT64_MAX;
    head_end_ = prompt_tokens_ = 0;
    for (const Run& run : silent) {
      const Part& part = parts[run.part];
      const Held& held = open_[part.sequence];
      const uint64_t first = tokens_.size(), position = held.tokens.size() + run.first;
      const auto tokens = part.tokens.subspan(run.first, run.count);
      tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
      rope_.fill(first, position, run.count);
      StepContext context;
      context.position = position - first;
      context.pages = held.places;
      context.states = states_of(part.sequence);
      context.kv_overflow = &overflows_[segments_.size()];
      segments_.push_back({first, run.count, context});
      part_of_.push_back(run.part);
      if (part.logits && run.first + run.count == part.tokens.size()) {
        row_of_[run.part] = tokens_.size() - 1;
        head_first_ = std::min(head_first_, row_of_[run.part]);
        head_end_ = tokens_.size();
      }
      if (part_of_.size() == prompts)
        prompt_tokens_ = tokens_.size();
    }
    overlay_ = open_[parts[0].sequence].overlay;
  }

  void execute() {
    StepContext context;
    context.arena = arena_.data();
    context.tokens = tokens_.data();
    context.kv_type = kv_type_;
    context.page_layers = page_layers_;
    context.rope_cos = rope_.cosines();
    context.rope_sin = rope_.sines();
    context.overlay = overlay_.get();
    context.experts = experts_.get();
    context.prompt = prompt_tokens_;
    for (StepSegment& segment : segments_) {
      StepContext& own = segment.context;
      const StepContext given = own;
      own = context;
      own.position = given.position;
      own.pages = given.pages;
      own.states = given.states;
      own.kv_overflow = given.kv_overflow;
    }
    const uint64_t count = tokens_.size(), first = std::min(head_first_, head_end_);
    if (experts_)
      experts_->begin(count);
    executor_.step(context, count, first, head_end_ - first, segments_);
    failure_ = experts_ ? experts_->end() : Status();
  }

  Result finish(const Part& part, size_t number) {
    Held& held = open_[part.sequence];
    Result out;
    out.status = failure_;
    for (size_t i = 0; i < segments_.size(); ++i)
      if (const uint32_t layer = overflows_[i].load(std::memory_order_relaxed);
          layer != 0 && part_of_[i] == number && out.status.ok())
        out.status =
            unsupported("layer " + std::to_string(layer - 1) + ": a key or value is not finite" +
                        (kv_type_ == KvType::kF16 ? " or beyond 65504, the largest number of the f16 cache" : "") +
                        "; use --kv f32");
    if (!out.status.ok()) {
      held.broken = true;
      return out;
    }
    held.tokens.insert(held.tokens.end(), part.tokens.begin(), part.tokens.end());
    if (held.root)
      remember_pages(held);
    if (part.logits)
      out.logits = {program_.logits.f32(arena_.data(), row_of_[number]), vocab()};
    return out;
  }

  void remember_pages(Held& held) {
    for (; (held.known + 1) * kPositionBlock <= held.tokens.size(); ++held.known) {
      const uint64_t i = held.known;
      held.pages[i] =
          cache_->remember(*held.root, i == 0 ? PageCache::kNone : held.pages[i - 1],
                           std::span(held.tokens).subspan(i * kPositionBlock, kPositionBlock), held.pages[i]);
      held.places[i] = place_of(held.pages[i]);
    }
  }

  std::shared_ptr<const Model> model_;
  const ResolvedProgram& program_;
  const KvType kv_type_;
  const uint64_t max_context_;
  uint64_t page_bytes_ = 0;
  std::vector<KvPageLayer> page_layers_;
  ReservedMemory arena_, pages_, states_;
  std::vector<float*> state_places_; ///< [sequence][state]
  std::optional<PageCache> cache_;
  std::vector<formats::OverlaySelection> selections_; ///< by root of the cache
  RopeState rope_;
  std::unique_ptr<ExpertStep> experts_; ///< of a model with a budget
  uint64_t budgeted_ = 0;
  Executor executor_;
  std::vector<Held> open_; ///< by number
  uint64_t clock_ = 0;     ///< of ends

  // Of a step.
  std::vector<uint32_t> tokens_;
  std::vector<StepSegment> segments_;
  std::vector<size_t> part_of_;                        ///< of each segment
  std::vector<uint64_t> row_of_;                       ///< of each part's logits
  std::unique_ptr<std::atomic<uint32_t>[]> overflows_; ///< of each segment
  uint64_t head_first_ = 0, head_end_ = 0;
  uint64_t prompt_tokens_ = 0;                  ///< the batch begins with
  std::shared_ptr<const OverlayState> overlay_; ///< of the step
  Status failure_;                              ///< of all parts
  std::vector<Result> results_;
};

} // namespace

StatusOr<std::unique_ptr<BatchEngine>> BatchEngine::create(std::shared_ptr<const Model> model,
                                                           const BatchOptions& options) {
  if (options.gpu)
    return make_session_batch(std::move(model), options);
  auto batch = std::make_unique<ArtifactBatch>(std::move(model), options);
  CORTIQ_RETURN_IF_ERROR(batch->reserve(options));
  return std::unique_ptr<BatchEngine>(std::move(batch));
}

} // namespace cortiq::runtime

// One matrix of every expert in use with the pairs that chose it: rows in blocks, an expert's pairs in token tiles. The
// gate matrices may take in those of up and make the gates of each block (moe_stages.h).

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "formats/checked_math.h"
#include "formats/quote.h"
#include "runtime/experts/expert_ticket.h"
#include "runtime/ops/kernel_tiles.h"
#include "runtime/ops/moe.h"
#include "runtime/ops/moe_stages.h"

namespace cortiq::runtime {
namespace {

using formats::kRowGroup;

// An item's weights stay in the second-level cache while all pairs of the expert pass over them.
constexpr uint64_t kItemBytes = 96 * 1024;
// Items a worker gets at least, so that a late worker costs little.
constexpr uint64_t kItemsPerWorker = 4;
constexpr uint64_t kPage = 4096;

/// One expert's matrix. Equal lists of kernels are kept once: models have thousands of experts.
struct Expert {
  const uint8_t* bytes; ///< of the packed tensor, where the artifact is mapped
  uint64_t rows, tensor_bytes, row_bytes;
  const TileSet *full_tiles, *tail_tiles;
  const float* bias;
  SlotRef input, token, out, sum; ///< records of the pairs, but for `token`, of the tokens
  ArenaRange copies;              ///< where `input` lies

  /// Whether one pass over the weights serves so many pairs, of which `prompt` are of a prompt's tokens.
  bool read_once(uint64_t pairs, uint64_t prompt) const {
    if (full_tiles && full_tiles->half && prompt != 0)
      return prompt == pairs && pairs <= full_tiles->half->tokens;
    return pairs <= (full_tiles ? tokens_a_pass(full_tiles->tiles, pairs) : 1);
  }
};

class MoeMatmulCall final : public Call, public ExpertProducts {
public:
  CallInfo info() const override {
    return {name, most_groups * kRowGroup, cols, std::min<uint64_t>(choices, experts.size()) * average_bytes};
  }
  CallWork work(const StepContext&, const StepShape& shape) const override {
    // A token leaves an expert alone with probability 1 - choices / experts.
    const auto all = static_cast<double>(experts.size());
    const double used =
        all * (1 - std::pow(1 - std::min(1.0, static_cast<double>(choices) / all), static_cast<double>(shape.count)));
    return {static_cast<uint64_t>(used * static_cast<double>(average_bytes)),
            2 * most_groups * kRowGroup * cols * choices * shape.count};
  }

  bool of_experts() const override { return true; }
  uint64_t items(const StepShape& shape) const override {
    if (done_by && done_by->makes_gates())
      return 0;
    return most_used(shape) * formats::ceil_div(most_groups, groups_an_item(shape));
  }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const MoePlan plan(plan_slot, step.arena, shape, experts.size(), choices);
    const uint64_t each = groups_an_item(shape), blocks = formats::ceil_div(most_groups, each);
    // Items are counted for as many experts as the batch could use; those behind the last are empty. With a ticket its
    // count decides: an artifact may lay what is computed here over the plan, and every unit has to be finished.
    uint64_t used = std::min(plan.experts_in_use(), most_used(shape));
    ExpertTicket* ticket = step.experts && bank != kNoIndex
                               ? &step.experts->open(bank, {plan.used, used}, static_cast<uint32_t>(blocks))
                               : nullptr;
    if (ticket)
      used = ticket->count();
    end = std::min(end, used * blocks);
    if (begin >= end)
      return;
    for (uint64_t item = begin, next; item < end; item = next) {
      const uint64_t position = item / blocks;
      const uint64_t number = ticket ? ticket->expert(position) : plan.expert_in_use(position);
      const Expert& expert = experts[number];
      const uint64_t groups = formats::ceil_div(expert.rows, kRowGroup), full = expert.rows / kRowGroup;
      const auto [pair, end_pair] = plan.pairs_of(number);
      const uint64_t pairs = end_pair - pair, prompt = prompt_pairs(plan, shape, pair, end_pair);
      // Weights that are read once are read in one go.
      next = expert.read_once(pairs, prompt) ? std::min(end, (position + 1) * blocks) : item + 1;
      const uint64_t first = item % blocks * each, last = std::min(first + (next - item) * each, groups);
      const auto product = [&](const Expert& one, const uint8_t* bytes) {
        if (first < std::min(last, full))
          run_rows(step, shape, plan, one, bytes, *one.full_tiles, first, std::min(last, full) - first, pair,
                   {pairs, prompt}, scratch);
        if (first < last && last > full)
          run_rows(step, shape, plan, one, bytes, *one.tail_tiles, full, 1, pair, {pairs, prompt}, scratch);
      };
      // What could not be read is left out: the step fails in the end.
      if (const uint8_t* bytes = ticket ? step.experts->bytes(*ticket, position) : expert.bytes)
        product(expert, bytes);
      if (makes_gates() && first < last) {
        product(ups->experts[number], ups->experts[number].bytes);
        for (uint64_t p = 0; p < pairs; ++p)
          gates->run_columns(step, shape.first * choices + pair + p, number, first * kRowGroup,
                             std::min(last * kRowGroup, expert.rows), scratch);
      }
      if (ticket)
        step.experts->finish(*ticket, position, static_cast<uint32_t>(next - item));
    }
  }

  uint64_t scratch_bytes() const override {
    uint64_t bytes = std::max(formats::kKernelScratchBytes, gates ? gates->column_scratch_bytes() : 0);
    for (const auto& [numbers, kernels] : tiles)
      bytes = std::max(bytes, tiles_scratch_bytes(kernels, cols));
    return bytes;
  }
  /// Experts get their places in the order of the ticket, and give them up when they are done.
  bool in_order() const override { return bank != kNoIndex; }

  bool make_gates(ExpertProducts& others, PairGates& made) override {
    auto* up_call = dynamic_cast<MoeMatmulCall*>(&others);
    if (!up_call || up_call->experts.size() != experts.size() || up_call->choices != choices ||
        up_call->plan_slot.offset != plan_slot.offset || made.plan().offset != plan_slot.offset ||
        made.expert_widths().size() != experts.size())
      return false;
    for (size_t e = 0; e < experts.size(); ++e) {
      const Expert &gate = experts[e], &up = up_call->experts[e];
      if (gate.rows != made.expert_widths()[e] || up.rows != gate.rows || gate.out.offset != made.gate_rows().offset ||
          up.out.offset != made.up_rows().offset || gate.sum.present || up.sum.present)
        return false;
    }
    ups = up_call;
    gates = &made;
    up_call->done_by = this;
    made.leave_to(*this);
    return true;
  }
  /// Experts that are read as they are needed come a matrix at a time.
  bool makes_gates() const override { return gates && bank == kNoIndex && ups->bank == kNoIndex; }
  bool can_read_in_place(const std::vector<ArenaRange>& copies) const override {
    return std::all_of(experts.begin(), experts.end(), [&](const Expert& expert) {
      return expert.token.present || std::none_of(copies.begin(), copies.end(),
                                                  [&](const ArenaRange& range) { return range.meets(expert.copies); });
    });
  }
  void read_in_place(uint64_t tokens) override { in_place = tokens; }
  std::vector<ArenaRange> reads() const override { return read_ranges; }

  void note_reading(const ArenaRange& range) {
    if (std::find(read_ranges.begin(), read_ranges.end(), range) == read_ranges.end())
      read_ranges.push_back(range);
  }

  SlotRef plan_slot;
  uint64_t in_place = 1;                  ///< tokens of the largest batch whose tokens are read where they stand
  std::vector<ArenaRange> read_ranges;    ///< each once
  const MoeMatmulCall* ups = nullptr;     ///< whose work this one does when it makes the gates
  const MoeMatmulCall* done_by = nullptr; ///< who does this one's work when it makes the gates
  const PairGates* gates = nullptr;
  std::vector<Expert> experts;
  std::map<std::vector<uint32_t>, TileSet> tiles; ///< by kernel numbers
  uint64_t choices = 0, cols = 0, most_groups = 0, average_bytes = 0;
  std::string name;
  uint32_t bank = kNoIndex; ///< the store's number of this matrix; none: the artifact's mapping is read

private:
  uint64_t most_used(const StepShape& shape) const { return std::min<uint64_t>(experts.size(), shape.count * choices); }

  uint64_t groups_an_item(const StepShape& shape) const {
    const uint64_t by_cache = std::max<uint64_t>(1, kItemBytes / (average_bytes / most_groups + 1));
    // Gates are quantized 32 rows at a time, and the kernel for prompts takes two row groups together.
    const TileSet* first = experts.front().full_tiles;
    const uint64_t unit = makes_gates() || (first && half_tokens(*first, shape) != 0) ? 2 : 1;
    const auto whole_units = [&](uint64_t groups) { return formats::ceil_div(groups, unit) * unit; };
    // A token or a few of them rarely meet in an expert: each group is read once, however it is cut.
    if (shape.count <= 4)
      return shape.threads == 1 ? whole_units(most_groups) : unit;
    const uint64_t by_workers =
        std::max<uint64_t>(1, most_used(shape) * most_groups / (kItemsPerWorker * shape.threads));
    return whole_units(std::min({by_cache, by_workers, most_groups}));
  }

  /// Of an expert's pairs, whose tokens ascend, those of a prompt's tokens.
  static uint64_t prompt_pairs(const MoePlan& plan, const StepShape& shape, uint64_t pair, uint64_t end) {
    if (shape.prompt == 0 || shape.prompt == shape.count)
      return shape.prompt == 0 ? 0 : end - pair;
    uint64_t prompt = 0;
    while (pair + prompt < end && plan.token_of(pair + prompt) < shape.prompt)
      ++prompt;
    return prompt;
  }

  /// Rows of `count` groups with `pairs` of the expert, from pair `pair` on.
  void run_rows(const StepContext& step, const StepShape& shape, const MoePlan& plan, const Expert& expert,
                const uint8_t* bytes, const TileSet& kernels, uint64_t group, uint64_t count, uint64_t pair,
                const TokenRun& pairs, uint8_t* scratch) const {
    if (shape.count > in_place || !expert.token.present) {
      const uint64_t first = shape.first * choices + pair;
      run_pairs(step, expert, bytes, kernels, group, count, first, pairs, expert.input.bytes(step.arena, first),
                expert.input.stride, scratch);
      return;
    }
    // Tokens at equal distances go together; those of an expert ascend.
    for (uint64_t done = 0, run; done < pairs.count; done += run) {
      const uint64_t first = plan.token_of(pair + done);
      uint64_t distance = 0;
      for (run = 1; done + run < pairs.count; ++run) {
        const uint64_t token = plan.token_of(pair + done + run);
        if (run == 1)
          distance = token > first ? token - first : 0;
        if (distance == 0 || token != first + run * distance)
          break;
      }
      const TokenRun together{run, std::min(run, pairs.prompt - std::min(pairs.prompt, done))};
      run_pairs(step, expert, bytes, kernels, group, count, shape.first * choices + pair + done, together,
                expert.token.bytes(step.arena, shape.first + first), distance * expert.token.stride, scratch);
    }
  }

  /// The same for pairs whose activations begin at `act`, `act_stride` apart; `first` counts in the whole arena.
  void run_pairs(const StepContext& step, const Expert& expert, const uint8_t* bytes, const TileSet& kernels,
                 uint64_t group, uint64_t count, uint64_t first, const TokenRun& pairs, const uint8_t* act,
                 uint64_t act_stride, uint8_t* scratch) const {
    const uint64_t row = group * kRowGroup;
    formats::KernelArgs args{};
    args.weights = bytes + expert.tensor_bytes + row * expert.row_bytes;
    args.tensor = bytes;
    args.act = act;
    args.out = expert.out.f32(step.arena, first) + row;
    args.bias = expert.bias ? expert.bias + row : nullptr;
    args.residual = expert.sum.present ? expert.sum.f32(step.arena, first) + row : nullptr;
    args.residual_stride = expert.sum.stride;
    args.scratch = scratch;
    args.groups = count;
    args.act_stride = act_stride;
    args.out_stride = expert.out.stride;
    args.first_row = row;
    args.tensor_rows = expert.rows;
    run_tiles(kernels, args, pairs);
    // A matrix that reads this as it is wants zeros behind it.
    for (uint64_t p = 0; count * kRowGroup + row > expert.rows && p < pairs.count; ++p) {
      float* record = expert.out.f32(step.arena, first + p);
      std::fill(record + expert.rows, record + formats::ceil_div(expert.rows, 16) * 16, 0.0f);
    }
  }
};

StatusOr<const TileSet*> tiles_of(MoeMatmulCall& call, const flatbuffers::Vector<uint32_t>& list,
                                  const KernelNeeds& needs, const Resolver& resolver) {
  // A list that fits one expert fits every other of the same shape; shapes differ in their kernels.
  CORTIQ_ASSIGN_OR_RETURN(TileSet tiles, resolve_tiles(list, needs, resolver, "moe_matmul"));
  return &call.tiles.try_emplace({list.begin(), list.end()}, std::move(tiles)).first->second;
}

Status resolve_expert(const artifact::ExpertPart& part, const Resolver& resolver, MoeMatmulCall& call) {
  constexpr const char* kWhat = "moe_matmul";
  CORTIQ_ASSIGN_OR_RETURN(const WeightRef weight, resolver.weight(part.weight(), kWhat));
  if (weight.layout == formats::LayoutId::kVerbatim && weight.rows > INT32_MAX / weight.cols)
    return unsupported("moe_matmul: weight " + formats::quote(weight.entry->name()->string_view()) +
                       " has more than 2^31 weights in a layout without row groups");
  CORTIQ_RETURN_IF_ERROR(resolver.slot_elements(part.input(), kWhat).status());
  const bool q8 = resolver.is_q8(part.input());
  const artifact::BufferKind kind = q8 ? artifact::BufferKind::Q8Act : artifact::BufferKind::F32;
  Expert expert{weight.bytes.data(),
                weight.rows,
                weight.tensor_bytes,
                weight.row_bytes,
                nullptr,
                nullptr,
                nullptr,
                {},
                {},
                {},
                {},
                arena_range(resolver, part.input())};
  CORTIQ_ASSIGN_OR_RETURN(expert.input,
                          moe_record_slot(resolver, part.input(), kind, weight.cols, call.choices, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(
      expert.out, moe_record_slot(resolver, part.out(), artifact::BufferKind::F32, weight.rows, call.choices, kWhat));
  if (part.token() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(expert.token, q8 ? resolver.q8_slot(part.token(), weight.cols, kWhat)
                                             : resolver.f32_slot(part.token(), weight.cols, kWhat));
    call.note_reading(arena_range(resolver, part.token()));
  }
  call.note_reading(expert.copies);
  if (part.bias() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(expert.bias, resolver.vector(part.bias(), weight.rows, kWhat));
  }
  if (part.sum() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(
        expert.sum, moe_record_slot(resolver, part.sum(), artifact::BufferKind::F32, weight.rows, call.choices, kWhat));
  }
  const bool bias = part.bias() != kNoIndex, sum = part.sum() != kNoIndex;
  if (weight.rows >= kRowGroup) {
    CORTIQ_ASSIGN_OR_RETURN(
        expert.full_tiles, tiles_of(call, *part.kernels(), {weight, kRowGroup, q8, bias, sum, expert.input}, resolver));
  }
  if (weight.rows % kRowGroup != 0) {
    CORTIQ_ASSIGN_OR_RETURN(
        expert.tail_tiles,
        tiles_of(call, *part.tail_kernels(), {weight, weight.rows % kRowGroup, q8, bias, sum, expert.input}, resolver));
  }
  if (call.name.empty()) {
    const uint32_t shown = weight.rows >= kRowGroup ? part.kernels()->Get(0) : part.tail_kernels()->Get(0);
    call.name = resolver.kernels[shown].entry->name()->str();
  }
  call.cols = std::max(call.cols, weight.cols);
  call.most_groups = std::max(call.most_groups, formats::ceil_div(weight.rows, kRowGroup));
  call.average_bytes += weight.bytes.size();
  call.experts.push_back(expert);
  return {};
}

} // namespace

Status resolve_moe_matmul(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::MoeMatmulOp& matmul = *op.op_as_MoeMatmulOp();
  auto call = std::make_unique<MoeMatmulCall>();
  if (matmul.parts()->size() == 0)
    return invalid("moe_matmul: it has no experts");
  CORTIQ_ASSIGN_OR_RETURN(call->choices, moe_records(resolver, matmul.parts()->Get(0)->out(), "moe_matmul"));
  CORTIQ_ASSIGN_OR_RETURN(call->plan_slot,
                          moe_plan_slot(resolver, matmul.plan(), matmul.parts()->size(), call->choices, "moe_matmul"));
  call->note_reading(arena_range(resolver, matmul.plan()));
  for (const artifact::ExpertPart* part : *matmul.parts())
    CORTIQ_RETURN_IF_ERROR(resolve_expert(*part, resolver, *call));
  ExpertBankRef ref{static_cast<uint32_t>(facts.routers.size()), {}, 0, &call->bank};
  for (const artifact::ExpertPart* part : *matmul.parts()) {
    const WeightRef& weight = resolver.weights[part->weight()];
    ref.experts.push_back(weight.bytes);
    if (weight.codec->column_scales)
      ref.mapped_bytes += weight.tensor_bytes + kPage; // it may begin anywhere in a page
  }
  facts.expert_banks.push_back(std::move(ref));
  call->average_bytes /= call->experts.size();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime

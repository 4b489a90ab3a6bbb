// Matrix work: hands row groups and token tiles to the generated kernels. The product of a gate matrix may take in that
// of up and make the gates of each block (gate_stages.h).

#include <algorithm>
#include <cstdint>
#include <string>

#include "formats/artifact/kernel_abi.h"
#include "formats/checked_math.h"
#include "formats/quote.h"
#include "runtime/ops/gate_stages.h"
#include "runtime/ops/kernel_tiles.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

using formats::KernelArgs;
using formats::kRowGroup;

// An item's weights stay in the second-level cache while all token tiles pass over them.
constexpr uint64_t kItemBytes = 96 * 1024;
// Items a worker gets of each part at least, so that a late worker costs little.
constexpr uint64_t kItemsPerWorker = 4;
// Of a few tokens, whose weights pass once: as little as the wait for the last item may cost, three microseconds of a
// core's share of memory.
constexpr uint64_t kSinglePassItemBytes = 24 * 1024;
// Of many tokens an item has about so many: what waits for the last item is short then. A worker that takes all tokens
// of some rows, as it does up to its last rows, decodes them once.
constexpr uint64_t kItemTokens = 64;
// Of the kernel for prompts, whose products of a row take a quarter of the time: fewer share out better, but decode the
// last rows of a worker more often.
constexpr uint64_t kHalfItemTokens = 256;
// Tokens whose products an item keeps until it has made their gates: what both matrices give for them is 64 KiB.
constexpr uint64_t kGateTokens = 256;

/// One part of a MatmulOp: a weight with the kernels for its full groups and for its short last one.
class MatmulCall final : public Call, public GatedProduct, public TokenProduct {
public:
  CallInfo info() const override { return {name, weight.rows, weight.cols, weight.bytes.size()}; }
  CallWork work(const StepContext&, const StepShape& shape) const override {
    return {weight.bytes.size(), 2 * weight.rows * weight.cols * shape.count};
  }

  /// [blocks of row groups][blocks of tokens]
  uint64_t items(const StepShape& shape) const override {
    if (done_by && done_by->makes_gates(shape))
      return 0;
    return formats::ceil_div(groups(), groups_an_item(shape)) * token_blocks(shape);
  }
  uint64_t together(const StepShape& shape) const override { return token_blocks(shape); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const uint64_t each = groups_an_item(shape), blocks = token_blocks(shape), tokens = tokens_an_item(shape);
    for (uint64_t item = begin, next; item < end; item = next) {
      const uint64_t first = item / blocks * each, token = item % blocks * tokens;
      // Weights that pass once pass in one go, others meet all their tokens.
      next = single_pass(shape) ? end : std::min(end, item - item % blocks + blocks);
      const uint64_t last = std::min(formats::ceil_div(next, blocks) * each, groups());
      const Tokens some{shape.first + token, std::min(shape.count - token, (next - item) * tokens)};
      if (makes_gates(shape))
        run_gates(step, shape, some, first, last, scratch);
      else
        run_rows(step, shape, some, first, last, scratch, in_arena(step, some));
    }
  }

  std::span<const uint8_t> weights_of(const StepShape& shape, uint64_t begin, uint64_t end) const override {
    const uint64_t block_bytes = groups_an_item(shape) * kRowGroup * weight.row_bytes, blocks = token_blocks(shape);
    const std::span<const uint8_t> rows = weight.bytes.subspan(std::min(weight.tensor_bytes, weight.bytes.size()));
    const uint64_t first = std::min<uint64_t>(begin / blocks * block_bytes, rows.size());
    return rows.subspan(first, std::min<uint64_t>(formats::ceil_div(end, blocks) * block_bytes, rows.size()) - first);
  }

  uint32_t result_slot() const override { return residual.present ? kNoIndex : out_index; }
  std::vector<SlotRef> read() const override {
    return residual.present ? std::vector<SlotRef>{input, residual} : std::vector<SlotRef>{input};
  }
  bool make_gates(GatedProduct& other, const BlockGates& made) override {
    auto* up = dynamic_cast<MatmulCall*>(&other);
    if (!up || weight.rows != made.width() || up->weight.rows != weight.rows || residual.present ||
        up->residual.present)
      return false;
    up->done_by = this;
    ups = up;
    gates = &made;
    return true;
  }
  bool makes_gates(const StepShape& shape) const override {
    return gates && shape.count >= kItemTokens && !in_half(shape) && !ups->in_half(shape);
  }

  uint64_t scratch_bytes() const override {
    return ups ? product_bytes() + 2 * kGateTokens * kGateRows * sizeof(float) : kernel_bytes();
  }

  const SlotRef& token_input() const override { return input; }
  uint64_t product_scratch_bytes() const override { return formats::kKernelScratchBytes; }
  void of_token(const uint8_t* act, float* result, uint8_t* scratch) const override {
    KernelArgs args = arguments(0, full_groups(), scratch);
    args.act = act;
    args.out = result;
    args.residual = nullptr;
    if (full_groups() != 0)
      run_tiles(full_tiles, args, {1});
    if (groups() != full_groups()) {
      args = arguments(full_groups(), 1, scratch);
      args.act = act;
      args.out = result + full_groups() * kRowGroup;
      args.residual = nullptr;
      run_tiles(tail_tiles, args, {1});
    }
  }

  WeightRef weight;
  TileSet full_tiles, tail_tiles;
  SlotRef input, out, residual;
  const float* bias = nullptr;
  uint32_t out_index = kNoIndex;
  std::string name;
  const MatmulCall* ups = nullptr;     ///< whose work this one does when it makes the gates
  const MatmulCall* done_by = nullptr; ///< who does this one's work when it makes the gates
  const BlockGates* gates = nullptr;

private:
  uint64_t full_groups() const { return weight.rows / kRowGroup; }
  uint64_t groups() const { return formats::ceil_div(weight.rows, kRowGroup); }

  bool single_pass(const StepShape& shape) const {
    return !in_half(shape) && shape.count <= 4 &&
           shape.count <= tokens_a_pass((full_groups() != 0 ? full_tiles : tail_tiles).tiles, shape.count);
  }

  uint64_t groups_an_item(const StepShape& shape) const {
    if (shape.threads == 1 && shape.count <= 4 && !in_half(shape))
      return groups(); // nobody to share with, and no tile passes twice
    if (makes_gates(shape))
      return kGateRows / kRowGroup;
    if (in_half(shape))
      return even_share(shape.threads, full_tiles.half->most_groups);
    if (full_groups() != 0 && on_tile_registers(full_tiles.tiles, shape.count))
      return 2; // a whole block: its weights are decoded once for all tokens, and what waits for the last item is short
    const uint64_t group_bytes = weight.bytes.size() / groups() + 1; // of a layout without row groups: on average
    const uint64_t by_cache =
        std::max<uint64_t>(1, (single_pass(shape) ? kSinglePassItemBytes : kItemBytes) / group_bytes);
    const uint64_t by_workers = std::max<uint64_t>(1, groups() / (kItemsPerWorker * shape.threads));
    return std::min(by_cache, by_workers);
  }

  /// The kernel for prompts takes many tokens with many row groups at once, and even shares of them. Tokens other than
  /// a prompt's follow an item by item, while its weights are near.
  bool in_half(const StepShape& shape) const { return half_tokens(full_tiles, shape) != 0; }

  /// Groups an item, up to `most` and whole blocks of two, so that workers get equally many items.
  uint64_t even_share(uint64_t threads, uint64_t most) const {
    const uint64_t rounds = formats::ceil_div(groups(), threads * most);
    return std::min(most, (formats::ceil_div(groups(), threads * rounds) + 1) / 2 * 2);
  }

  uint64_t tokens_an_item(const StepShape& shape) const {
    const uint64_t each = in_half(shape) ? kHalfItemTokens : kItemTokens;
    const uint64_t blocks = shape.threads == 1 ? 1 : std::max<uint64_t>(1, shape.count / each);
    return formats::tile_kernel_tokens(std::max<uint64_t>(1, formats::ceil_div(shape.count, blocks)));
  }
  uint64_t token_blocks(const StepShape& shape) const {
    return std::max<uint64_t>(1, formats::ceil_div(shape.count, tokens_an_item(shape)));
  }

  struct Tokens {
    uint64_t first, count; ///< of the batch's
  };
  /// Where results go.
  struct Results {
    float* at;       ///< that of the first token and row `row`
    uint64_t stride; ///< bytes from token to token
    uint64_t row;
  };
  Results in_arena(const StepContext& step, const Tokens& tokens) const {
    return {out.f32(step.arena, tokens.first), out.stride, 0};
  }

  /// Row groups [first, last).
  void run_rows(const StepContext& step, const StepShape& shape, const Tokens& tokens, uint64_t first, uint64_t last,
                uint8_t* scratch, const Results& results) const {
    const uint64_t prompt_end = shape.first + shape.prompt;
    const TokenRun all{tokens.count, std::min(tokens.count, prompt_end - std::min(prompt_end, tokens.first)),
                       shape.count - shape.prompt};
    const auto run = [&](const TileSet& tiles, uint64_t group, uint64_t count) {
      const uint64_t row = group * kRowGroup;
      KernelArgs args = arguments(group, count, scratch);
      args.act = input.bytes(step.arena, tokens.first);
      args.out = results.at + (row - results.row);
      args.out_stride = results.stride;
      args.residual = residual.present ? residual.f32(step.arena, tokens.first) + row : nullptr;
      run_tiles(tiles, args, all);
    };
    if (first < std::min(last, full_groups()))
      run(full_tiles, first, std::min(last, full_groups()) - first);
    if (last > full_groups())
      run(tail_tiles, full_groups(), 1);
  }

  /// The same rows of both matrices, and their gates.
  void run_gates(const StepContext& step, const StepShape& shape, const Tokens& tokens, uint64_t first, uint64_t last,
                 uint8_t* scratch) const {
    const uint64_t row = first * kRowGroup, stride = kGateRows * sizeof(float);
    auto* gate_rows = reinterpret_cast<float*>(scratch + product_bytes());
    float* up_rows = gate_rows + kGateTokens * kGateRows;
    for (uint64_t done = 0; done < tokens.count; done += kGateTokens) {
      const Tokens some{tokens.first + done, std::min(kGateTokens, tokens.count - done)};
      run_rows(step, shape, some, first, last, scratch, {gate_rows, stride, row});
      ups->run_rows(step, shape, some, first, last, scratch, {up_rows, stride, row});
      gates->run_rows(step, some.first, some.count, row, std::min(last * kRowGroup, weight.rows) - row, gate_rows,
                      up_rows);
    }
  }

  uint64_t kernel_bytes() const {
    return std::max(tiles_scratch_bytes(full_tiles, weight.cols), tiles_scratch_bytes(tail_tiles, weight.cols));
  }
  /// Of the kernels of both matrices.
  uint64_t product_bytes() const { return std::max(kernel_bytes(), ups->kernel_bytes()); }

  KernelArgs arguments(uint64_t group, uint64_t count, uint8_t* scratch) const {
    const uint64_t row = group * kRowGroup;
    KernelArgs args;
    args.weights = weight.bytes.data() + weight.tensor_bytes + row * weight.row_bytes;
    args.tensor = weight.bytes.data();
    args.bias = bias ? bias + row : nullptr;
    args.scratch = scratch;
    args.groups = count;
    args.act_stride = input.stride;
    args.out_stride = out.stride;
    args.residual_stride = residual.stride;
    args.first_row = row;
    args.tensor_rows = weight.rows;
    return args;
  }
};

Status resolve_part(const artifact::MatmulPart& part, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  auto call = std::make_unique<MatmulCall>();
  CORTIQ_ASSIGN_OR_RETURN(call->weight, resolver.weight(part.weight(), "matmul"));
  const WeightRef& weight = call->weight;
  // Kernels on the file's own layout number weights in 32 bits.
  if (weight.layout == formats::LayoutId::kVerbatim && weight.rows > INT32_MAX / weight.cols)
    return unsupported("matmul: weight " + formats::quote(weight.entry->name()->string_view()) +
                       " has more than 2^31 weights in a layout without row groups");
  const StatusOr<uint64_t> elements = resolver.slot_elements(part.input(), "matmul input");
  CORTIQ_RETURN_IF_ERROR(elements.status());
  const bool q8 = resolver.is_q8(part.input());
  if (q8 && part.input_column() != 0)
    return invalid("matmul: quantized activations have no columns");
  // Kernels read whole vectors: what stands behind the features must be padding, or other features that zeros meet.
  if (part.input_column() % 16 != 0 || (*elements != weight.cols && weight.cols % 16 != 0))
    return invalid("matmul: the input column " + std::to_string(part.input_column()) + " of " +
                   std::to_string(weight.cols) + " features does not fill whole vectors");
  CORTIQ_ASSIGN_OR_RETURN(call->input,
                          q8 ? resolver.q8_slot(part.input(), weight.cols, "matmul input")
                          : part.input_column() == 0 && *elements == weight.cols
                              ? resolver.f32_slot(part.input(), weight.cols, "matmul input")
                              : resolver.f32_columns(part.input(), part.input_column(), weight.cols, "matmul input"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_columns(part.out(), part.out_column(), weight.rows, "matmul output"));
  call->out_index = part.out();
  if (part.residual() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(
        call->residual, resolver.f32_columns(part.residual(), part.residual_column(), weight.rows, "matmul residual"));
  }
  if (part.bias() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->bias, resolver.vector(part.bias(), weight.rows, "matmul bias"));
  }
  const bool bias = part.bias() != kNoIndex, residual = part.residual() != kNoIndex;
  if (weight.rows >= kRowGroup) {
    CORTIQ_ASSIGN_OR_RETURN(
        call->full_tiles,
        resolve_tiles(*part.kernels(), {weight, kRowGroup, q8, bias, residual, call->input}, resolver, "matmul"));
  }
  if (weight.rows % kRowGroup != 0) {
    CORTIQ_ASSIGN_OR_RETURN(call->tail_tiles,
                            resolve_tiles(*part.tail_kernels(),
                                          {weight, weight.rows % kRowGroup, q8, bias, residual, call->input}, resolver,
                                          "matmul"));
  }
  const uint32_t shown = weight.rows >= kRowGroup ? part.kernels()->Get(0) : part.tail_kernels()->Get(0);
  call->name = resolver.kernels[shown].entry->name()->str();
  if (part.residual() == kNoIndex)
    facts.products.push_back({part.out(), q8, call.get()});
  out.push_back(std::move(call));
  return {};
}

} // namespace

Status resolve_matmul(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  for (const artifact::MatmulPart* part : *op.op_as_MatmulOp()->parts())
    CORTIQ_RETURN_IF_ERROR(resolve_part(*part, resolver, facts, out));
  return {};
}

} // namespace cortiq::runtime

// Embedding: decodes one row of the table a token, zeros where the table has no such row. A row is read once a step, so
// the layout's own decode serves.

#include <algorithm>

#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

class EmbedCall final : public Call {
public:
  CallInfo info() const override { return {"embed", weight.rows, weight.cols, weight.bytes.size() / weight.rows}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      float* row = out.f32(step.arena, token);
      if (step.tokens[token] >= weight.rows) {
        std::fill_n(row, (weight.cols + 15) / 16 * 16, 0.0f);
        continue;
      }
      // Cannot fail: codec, layout and shape were checked at load.
      static_cast<void>(formats::decode_packed_row(*weight.codec, weight.layout, weight.bytes, weight.rows, weight.cols,
                                                   step.tokens[token], row)
                            .ok());
      for (uint64_t i = 0; i < weight.cols; ++i)
        row[i] *= scale;
      for (uint64_t i = weight.cols; i % 16 != 0; ++i)
        row[i] = 0;
    }
  }

  WeightRef weight;
  SlotRef out;
  float scale = 1;
};

} // namespace

Status resolve_embed(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::EmbedOp& embed = *op.op_as_EmbedOp();
  auto call = std::make_unique<EmbedCall>();
  CORTIQ_ASSIGN_OR_RETURN(call->weight, resolver.weight(embed.weight(), "embedding"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(embed.out(), call->weight.cols, "embedding"));
  call->scale = embed.scale();
  const uint64_t rows = call->weight.rows;
  facts.embedding_rows = facts.embedding_rows == 0 ? rows : std::min(facts.embedding_rows, rows);
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime

#pragma once

// The core of the `fast` arm on tile registers (tile_core.cpp says how).

#include "codegen/kernels/chunk_core.h"

namespace cortiq::codegen {

class TileCore final : public ChunkCore {
public:
  TileCore(CoreContext& c, Value args, Value scratch);

  void begin_call() override;
  void end_call() override;

private:
  /// A span of a run: group of 32 counted from the run's start, and number in the group.
  struct Span {
    unsigned group, number;
  };
  /// One of a span's four products: which of two tiles of tokens, and which of two row groups.
  struct Cell {
    unsigned tile, rows;
  };

  Cut cut() const override;
  void decode(Value weights, int64_t group_bytes) override;
  void put_levels(Address group, unsigned v, unsigned step, Value levels) override;
  void put_scale(Address group, unsigned v, unsigned span, Value scale) override;
  void put_minimum(Address group, unsigned v, unsigned span, Value minimum) override;
  void multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) override;
  void clear_scales(Value panel);
  void multiply_spans(const Place& at, const std::vector<Span>& spans, Value sums);
  void load_codes(const Place& at, Span span, unsigned tile);
  void load_levels(const Place& at, Span span, unsigned rows);
  int64_t slot(Cell cell, unsigned number) const;
  void store_products(unsigned product, Cell cell, unsigned number);
  std::vector<Value> add_products(const Place& at, Span span, Cell cell, unsigned number, std::vector<Value> acc);

  const unsigned at_once_; ///< whose products are stored before they are added
  Value products_;
};

} // namespace cortiq::codegen

#pragma once

// How the stages of a layer of experts take work from each other.
//
// The program has a stage for each thing that is done: pairs gathered, gate and up, gates, down. Where a batch allows
// it the second one does the others' work as well: it reads few tokens where they stand, and makes a block's gates, in
// the form that the down matrices read, as soon as the block's rows of gate and up are there. The stages that are left
// without items cost nothing. What runs by itself otherwise, in tests and for experts read under a budget, stays.

#include <cstdint>
#include <vector>

#include "runtime/executor/program.h"
#include "runtime/ops/stage_calls.h"

namespace cortiq::runtime {

class Resolver;

/// Tokens of a batch that experts read where they stand. So few rarely meet in an expert, so that runs of equal
/// distance, which is what kernels take, are nearly always the whole.
inline constexpr uint64_t kTokensInPlace = 4;

/// The bytes of slot `index`, for all tokens.
ArenaRange arena_range(const Resolver& resolver, uint32_t index);

/// Copies of tokens in the order of the pairs.
class PairCopies {
public:
  virtual ~PairCopies() = default;
  /// What the copies are read as; empty where they are more than copies.
  virtual std::vector<ArenaRange> copies() const = 0;
  /// Nobody reads them in batches of up to `tokens`.
  virtual void leave_out(uint64_t tokens) = 0;
};

class ExpertProducts;

/// The gates of pairs.
class PairGates {
public:
  virtual ~PairGates() = default;
  virtual const SlotRef& plan() const = 0;
  virtual const SlotRef& gate_rows() const = 0;
  virtual const SlotRef& up_rows() const = 0;
  virtual const std::vector<uint64_t>& expert_widths() const = 0;
  virtual std::vector<ArenaRange> written() const = 0;
  /// Columns [begin, end) of the gates of record `record`, whose expert is `expert`; `begin` is a multiple of 32, `end`
  /// too or the expert's width.
  virtual void run_columns(const StepContext& step, uint64_t record, uint64_t expert, uint64_t begin, uint64_t end,
                           uint8_t* scratch) const = 0;
  virtual uint64_t column_scratch_bytes() const = 0;
  /// Has no items while `products` makes the gates.
  virtual void leave_to(const ExpertProducts& products) = 0;
};

/// One matrix of every expert with its pairs.
class ExpertProducts {
public:
  virtual ~ExpertProducts() = default;
  virtual std::vector<ArenaRange> reads() const = 0;
  /// Makes `gates` of its own rows and those of `ups`, whose work it does as well; false where they do not fit.
  virtual bool make_gates(ExpertProducts& ups, PairGates& gates) = 0;
  virtual bool makes_gates() const = 0;
  /// Whether each expert that reads one of `copies` knows where the tokens stand.
  virtual bool can_read_in_place(const std::vector<ArenaRange>& copies) const = 0;
  /// Reads them there in batches of up to `tokens`.
  virtual void read_in_place(uint64_t tokens) = 0;
};

/// Joins what stands in neighbouring stages and depends on no skill or mask. Gates are made early only where their
/// buffers keep clear of all that the stage reads, as the compiler sees to.
void join_expert_stages(std::vector<Stage>& stages, uint64_t max_batch);

} // namespace cortiq::runtime

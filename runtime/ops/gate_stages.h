#pragma once

// How the products of gate and up make the gates of a dense block.
//
// The program has a stage for the two products and one for the gates. With many tokens an item of the first computes
// the same rows of both and makes their gates at once, in the form that the down matrix reads: the products' results
// never leave the second-level cache, and one stage is left without items. The numbers are those of two stages, bit for
// bit. With few tokens items would be larger than the wait for the last of them allows: the stages run by themselves.

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

inline constexpr uint64_t kGateRows = 32; ///< of an item that makes gates: activations have a scale for so many values

class GatedProduct;

/// The gates of a dense block.
class BlockGates {
public:
  virtual ~BlockGates() = default;
  virtual uint32_t gate_slot() const = 0;
  virtual uint32_t up_slot() const = 0; ///< kNoIndex: there is none
  virtual uint64_t width() const = 0;
  virtual std::vector<SlotRef> written() const = 0;
  /// Those of columns [begin, begin + count), a multiple of kGateRows and at most as many, of `tokens` tokens from
  /// `first` on; gate and up of each token stand kGateRows apart, readable to a multiple of 16.
  virtual void run_rows(const StepContext& step, uint64_t first, uint64_t tokens, uint64_t begin, uint64_t count,
                        const float* gate, const float* up) const = 0;
  /// Has no items while `product` makes the gates.
  virtual void leave_to(const GatedProduct& product) = 0;
};

/// One matrix, with an input and a result of its own.
class GatedProduct {
public:
  virtual ~GatedProduct() = default;
  virtual uint32_t result_slot() const = 0; ///< kNoIndex: it adds to something
  virtual std::vector<SlotRef> read() const = 0;
  /// Makes `gates` of its own rows and those of `up`, whose work it does as well; false where they do not fit.
  virtual bool make_gates(GatedProduct& up, const BlockGates& gates) = 0;
  virtual bool makes_gates(const StepShape& shape) const = 0;
};

/// Joins such stages where they depend on no skill or mask, the gates' buffers keep clear of what the products read, as
/// the compiler sees to, and nobody else uses the products' results. `uses`: of each slot.
void join_gate_stages(std::vector<Stage>& stages, uint64_t max_batch, std::span<const uint32_t> uses);

} // namespace cortiq::runtime

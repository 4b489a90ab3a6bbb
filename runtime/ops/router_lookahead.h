#pragma once

// The router of the next layer of experts, asked with what this layer's router is given: the residual stream changes
// little from layer to layer, so that most of the experts it names will be the right ones.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// A product that can be asked for one token outside of its place in the program.
class TokenProduct {
public:
  virtual ~TokenProduct() = default;
  virtual const SlotRef& token_input() const = 0;
  /// Bias included, residual not. `act` is in the form that the product's kernels take.
  virtual void of_token(const uint8_t* act, float* out, uint8_t* scratch) const = 0;
  virtual uint64_t product_scratch_bytes() const = 0;
};

/// A choice of experts that can be asked outside of its place in the program.
class ExpertChoice {
public:
  virtual ~ExpertChoice() = default;
  virtual uint64_t expert_count() const = 0;
  virtual uint64_t choice_count() const = 0;
  /// Writes choice_count() ids. `scratch` has choice_scratch_bytes().
  virtual void of_logits(const StepContext& step, const float* logits, int32_t* ids, uint8_t* scratch) const = 0;
  virtual uint64_t choice_scratch_bytes() const = 0;
};

struct ProductRef {
  uint32_t out = 0; ///< slot
  bool q8 = false;  ///< form of its input
  const TokenProduct* product = nullptr;
};

/// The router of a layer of experts. Without product: its logits do not come from a single plain one.
struct RouterRef {
  ProductRef product;
  const ExpertChoice* choice = nullptr;
};

/// Puts a call beside each router but the last that asks the next layer's router, for single tokens.
void add_router_lookahead(std::span<const RouterRef> routers, std::vector<Stage>& stages);

} // namespace cortiq::runtime

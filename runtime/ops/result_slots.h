#pragma once

// Where an operation's result goes: as f32 for whoever reads it so, quantized for the next product, or both.

#include "runtime/loader/resolver.h"

namespace cortiq::runtime {

/// Resolves those of the two slots that the operation has; without it `out` or `act_out` stays absent.
inline Status resolve_results(const Resolver& resolver, const auto& op, uint64_t elements, const char* what,
                              SlotRef& out, SlotRef& act_out) {
  if (op.out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(out, resolver.f32_slot(op.out(), elements, what));
  }
  if (op.act_out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(act_out, resolver.q8_slot(op.act_out(), elements, what));
  }
  return {};
}

} // namespace cortiq::runtime

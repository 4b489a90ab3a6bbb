#pragma once

// The core for payloads whose blocks run over row ends (flat_core.cpp says how).

#include <vector>

#include "codegen/kernels/core.h"

namespace cortiq::codegen {

class FlatCore {
public:
  /// Emits what is read once a call: the payload's address and where its scales begin.
  FlatCore(Emit& e, const KernelSpec& spec, Value args);

  /// Numbers of weight 0 of the rows of the call's first group, and of the group after `flat`'s.
  std::vector<Value> first_numbers(Value args);
  std::vector<Value> next_group(const std::vector<Value>& flat);

  /// Sums of the group whose rows start at `flat`.
  Sums run(const std::vector<Value>& tokens, const std::vector<Value>& flat);

private:
  Value weight(Value flat);

  Emit& e_;
  const KernelSpec& spec_;
  unsigned vectors_;
  Value payload_;
  Value first_scale_;
};

} // namespace cortiq::codegen

#pragma once

// The core for rows of different bit widths (vbit_core.cpp says how).

#include <vector>

#include "codegen/kernels/core.h"

namespace cortiq::codegen {

class VBitCore {
public:
  VBitCore(Emit& e, const KernelSpec& spec, unsigned vectors);

  /// Emits what is read once a call; gives what the groups carry from one to the next. `scratch`: 64 bytes.
  std::vector<Value> begin_call(Value args, Address scratch);

  /// Sums of a group, and what the next one is given.
  struct Result {
    Sums sums;
    std::vector<Value> next;
  };
  Result run(const std::vector<Value>& tokens, const std::vector<Value>& carried);

private:
  /// What the rows of a group are, a row a lane.
  struct Rows {
    std::vector<Value> start;  ///< bits from the group's stream to the row's
    std::vector<Value> unused; ///< 32 - width
    std::vector<Value> mask;   ///< width ones
    std::vector<Value> level;  ///< what a code of 0 lies below 0
  };
  Rows rows_of(Value widths);
  Sums sums_of(const std::vector<Value>& tokens, const Rows& rows, Value scales, Value stream);
  Value widths_before(Value args, Value widths, Value count);

  Emit& e_;
  const KernelSpec& spec_;
  unsigned vectors_;
  bool has_offsets_; ///< vbit_ro: a table says where rows start
  Address scratch_;
  Value streams_;
};

} // namespace cortiq::codegen

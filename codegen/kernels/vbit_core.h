#pragma once

// The core for rows of different bit widths (vbit_core.cpp says how).

#include <vector>

#include "codegen/kernels/core.h"

namespace cortiq::codegen {

class VBitCore {
public:
  VBitCore(Emit& e, const KernelSpec& spec, unsigned vectors);

  /// Emits what is read once a call; gives what the groups carry from one to the next. `scratch`: of the kernel.
  std::vector<Value> begin_call(Value args, Address scratch);

  /// Sums of a group, and what the next one is given.
  struct Result {
    Sums sums;
    std::vector<Value> next;
  };
  Result run(const std::vector<Value>& tokens, const std::vector<Value>& carried);

private:
  /// What depends on a row's width.
  struct Row {
    Value width;               ///< index
    std::vector<Value> places; ///< where the bytes of 16 weights' codes are
    std::vector<Value> masks, zeros;
    Address factors;
  };
  /// Where a row is read.
  struct Cursor {
    Value stream, scales;
    std::vector<Value> tokens;
  };

  unsigned parts() const; ///< vectors of 16 lanes
  Value width_table();
  Row row_of(Value number);
  std::vector<Value> levels(const Row& row, Value stream);
  std::vector<Value> over_groups(const Row& row, const Cursor& at, uint64_t count, std::vector<Value> sums);
  std::vector<Value> row_sums(const Row& row, const Cursor& at);
  Value widths_before(Value args, Value widths, Value count);

  Emit& e_;
  const KernelSpec& spec_;
  unsigned vectors_;
  bool has_offsets_; ///< vbit_ro: a table says where rows start
  Address scratch_, scales_, sums_;
  Value streams_;
};

} // namespace cortiq::codegen

#pragma once

#include <array>

#include "codegen/kernels/emit.h"

namespace cortiq::codegen {

/// What the sub-blocks of a record of many share, a row a lane: in registers where there are 32 of them, else in
/// scratch.
class RecordScratch {
public:
  void set(Address scratch) { scratch_ = scratch; }
  void put(Emit& e, unsigned v, unsigned shared, Value value) {
    if (in_registers(e))
      values_[v][shared] = value;
    else
      e.store(value, at(e, v, shared));
  }
  Value i32(Emit& e, unsigned v, unsigned shared) const {
    return in_registers(e) ? e.bitcast(values_[v][shared], e.i32()) : e.load(e.i32(), at(e, v, shared));
  }
  Value f32(Emit& e, unsigned v, unsigned shared) const {
    return in_registers(e) ? values_[v][shared] : e.load(e.f32(), at(e, v, shared));
  }

private:
  static constexpr unsigned kMost = 8;
  static bool in_registers(Emit& e) { return e.lanes() == 16; }
  Address at(Emit& e, unsigned v, unsigned shared) const {
    return scratch_ + int64_t(v * kMost + shared) * e.vector_bytes();
  }
  Address scratch_;
  std::array<std::array<Value, kMost>, 4> values_;
};

} // namespace cortiq::codegen

#pragma once

// What the codecs with nibbles stored as halves share: unit u of a 16-byte field holds weights 4u..4u+3 of 32 in its
// low nibbles and 16+4u..16+4u+3 in its high ones.

#include <array>

#include "codegen/kernels/decoder.h"

namespace cortiq::codegen {

class NibbleHalves : public Decoder {
public:
  using Decoder::Decoder;

  /// 0 4 1 5 2 6 3 7: the two steps that share a load follow each other.
  std::vector<unsigned> step_order(unsigned span) const override;

protected:
  /// Nibbles of step 0..7 of 32 weights whose field "qs" starts at unit `first_unit`.
  Value nibbles(const Record& record, unsigned v, unsigned step, unsigned first_unit = 0) {
    return e_.bit_and(nibbles_below(record, v, step, first_unit), e_.splat_i8(0x0f));
  }
  /// The same with anything above them.
  Value nibbles_below(const Record& record, unsigned v, unsigned step, unsigned first_unit = 0);
  /// Nibbles of step 4..7 where they stand, the upper ones of bytes.
  Value nibbles_in_place(const Record& record, unsigned v, unsigned step) {
    return e_.bit_and(stored_bytes(record, v, step, 0), e_.splat_i8(0xf0));
  }

private:
  /// The bytes that hold a step's nibbles.
  Value stored_bytes(const Record& record, unsigned v, unsigned step, unsigned first_unit);

  struct Loaded {
    unsigned unit = ~0u;
    Value base;
    int64_t disp = 0;
    Value bytes;
  };
  std::array<Loaded, 4> loaded_; // the last unit of each row vector: its second half follows at once
};

} // namespace cortiq::codegen

#pragma once

#include <array>

#include "codegen/kernels/decoder.h"

namespace cortiq::codegen {

/// A value that the steps of one dword, byte or group share: made for the first of them, kept for those that follow.
template <class What = Value>
class Kept {
public:
  template <class Make>
  const What& get(const Record& record, unsigned number, Make make) {
    if (!value_ || base_ != record.at.base || disp_ != record.at.disp || number_ != number) {
      value_ = make();
      base_ = record.at.base;
      disp_ = record.at.disp;
      number_ = number;
    }
    return value_;
  }

private:
  What value_;
  Value base_;
  int64_t disp_ = 0;
  unsigned number_ = 0;
};

using KeptRows = std::array<Kept<>, 4>; ///< one a row vector

} // namespace cortiq::codegen

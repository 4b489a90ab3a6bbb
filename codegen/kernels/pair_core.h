#pragma once

// The core of the `fast` arm on products of two rows by two (pair_core.cpp says how).

#include <array>

#include "codegen/kernels/chunk_core.h"

namespace cortiq::codegen {

class PairCore final : public ChunkCore {
public:
  PairCore(CoreContext& c, Value args, Value scratch);

  void epilogue(Address group, Value sums, const Output& output) override;

private:
  static constexpr unsigned kPairs = 2;  ///< of tokens in a block
  static constexpr unsigned kOctets = 4; ///< eights of weights in a group
  static constexpr unsigned kTokens = 2 * kPairs;
  static constexpr int64_t kVectorBytes = 16;

  /// What a group's products take: its panel, and its activations as they were arranged.
  struct Group {
    Address panel, act;
  };
  using Accumulators = std::vector<Value>; ///< by row pair, then pair of tokens

  Cut cut() const override;
  void put_levels(Address group, unsigned v, unsigned step, Value levels) override;
  void put_scale(Address group, unsigned v, unsigned span, Value scale) override;
  void put_minimum(Address group, unsigned v, unsigned span, Value minimum) override;
  void multiply_chunk(const Place& chunk, uint64_t groups, unsigned last_spans) override;

  unsigned row_pairs() const { return 2 * c_.vectors; }
  unsigned octets() const { return kOctets / spans_; } ///< of a span
  /// Places in a panel and in arranged activations.
  int64_t levels_at(unsigned span, unsigned row_pair, unsigned octet) const;
  int64_t scale_at(unsigned span, unsigned row_pair, bool minimum) const;
  int64_t token_scale_at(unsigned pair) const { return (kPairs * kOctets + pair) * kVectorBytes; }
  int64_t token_sum_at(unsigned span, unsigned pair) const {
    return (kPairs * kOctets + kPairs * (1 + span) + pair) * kVectorBytes;
  }
  void put_row_pairs(Address group, unsigned v, unsigned span, bool minimum, Value of_rows);

  void arrange(const Place& chunk, uint64_t groups);
  std::vector<Value> arrange_groups(const std::vector<Value>& from, uint64_t groups, unsigned pair);
  Accumulators add_groups(const Group& first, uint64_t groups, unsigned last_spans, Accumulators acc);
  void add_span(const Group& at, unsigned span, const std::vector<Value>& codes, Accumulators& acc);

  const int64_t act_bytes_;                           ///< of a group's arranged activations of a block of tokens
  std::array<std::array<Value, kOctets>, 4> waiting_; ///< by vector: levels that wait for the other four of their eight
  Value arranged_;
};

} // namespace cortiq::codegen

#pragma once

// A depthwise convolution over time: what its operations share. An item is a block of channels over all tokens of the
// batch, so that the last inputs, which are the state, belong to one worker.

#include "runtime/ops/op.h"

namespace cortiq::runtime {

class ConvolutionCall : public Call {
public:
  /// Channels of an item: whole cache lines of every row.
  static constexpr uint64_t kChannels = 64;

  uint64_t items(const StepShape&) const override { return (channels + kChannels - 1) / kChannels; }
  bool by_sequence() const override { return true; }
  uint64_t scratch_bytes() const override;
  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override;

  /// Reads the weight and the state of `channels` channels with `taps` taps.
  Status resolve(const Resolver& resolver, ProgramFacts& facts, uint32_t weight_index, uint32_t state_index,
                 uint64_t channel_count, uint64_t tap_count, const char* what);

  SlotRef input, out;
  uint64_t channels = 0, taps = 0;
  bool silu = false;

private:
  /// The inputs of channels [first, first + count) of a token.
  virtual void load(const float* in, uint64_t first, uint64_t count, float* row) const = 0;
  /// Takes their sums.
  virtual void store(const float* in, const float* sums, uint64_t first, uint64_t count, float* row) const = 0;

  const float* weight = nullptr; ///< [channels][taps]
  uint32_t state = 0;            ///< [taps - 1][channels], the oldest row first
};

} // namespace cortiq::runtime

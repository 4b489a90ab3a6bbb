#include "runtime/ops/convolution.h"

#include <algorithm>
#include <cstring>

#include "formats/checked_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/convolution.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/logistic-inl.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// sums[t][c] = sum over j of weight[j][c] * window[t + j][c]; rows of `channels` channels, a multiple of 16.
void ConvolveWindow(const float* weight, uint64_t taps, const float* window, uint64_t tokens, uint64_t channels,
                    bool silu, float* sums) {
  const F32 d;
  const auto one = hn::Set(d, 1.0f);
  for (uint64_t t = 0; t < tokens; ++t)
    for (uint64_t c = 0; c < channels; c += hn::Lanes(d)) {
      auto sum = hn::Zero(d);
      for (uint64_t j = 0; j < taps; ++j)
        sum = hn::MulAdd(hn::LoadU(d, weight + j * channels + c), hn::LoadU(d, window + (t + j) * channels + c), sum);
      if (silu)
        sum = hn::Div(sum, hn::Add(one, ExpNegative(d, sum)));
      hn::StoreU(sum, d, sums + t * channels + c);
    }
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(ConvolveWindow);

// Tokens between two moves of the window.
constexpr uint64_t kTokens = 32;
constexpr uint64_t kMaxTaps = 1 << 12;
constexpr uint64_t kBlock = ConvolutionCall::kChannels;

} // namespace

// Weights, window and sums of a block, [row][channel].
uint64_t ConvolutionCall::scratch_bytes() const {
  return (taps + (taps - 1 + kTokens) + kTokens) * kBlock * sizeof(float);
}

void ConvolutionCall::run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
                          uint8_t* scratch) const {
  auto* turned = reinterpret_cast<float*>(scratch);
  float* window = turned + taps * kBlock;
  float* sums = window + (taps - 1 + kTokens) * kBlock;
  std::memset(scratch, 0, scratch_bytes());
  for (uint64_t item = begin; item < end; ++item) {
    const uint64_t first = item * kBlock, count = std::min(kBlock, channels - first);
    for (uint64_t c = 0; c < count; ++c)
      for (uint64_t j = 0; j < taps; ++j)
        turned[j * kBlock + c] = weight[(first + c) * taps + j];
    float* kept = step.states[state] + first;
    for (uint64_t j = 0; j + 1 < taps; ++j)
      std::memcpy(window + j * kBlock, kept + j * channels, count * sizeof(float));
    for (uint64_t done = 0; done < shape.count; done += kTokens) {
      const uint64_t tokens = std::min(kTokens, shape.count - done), from = shape.first + done;
      for (uint64_t t = 0; t < tokens; ++t)
        load(input.f32(step.arena, from + t), first, count, window + (taps - 1 + t) * kBlock);
      HWY_DYNAMIC_DISPATCH(ConvolveWindow)(turned, taps, window, tokens, kBlock, silu, sums);
      for (uint64_t t = 0; t < tokens; ++t) {
        float* row = out.f32(step.arena, from + t);
        store(input.f32(step.arena, from + t), sums + t * kBlock, first, count, row + first);
        if (first + count == channels) // the exact arm reads activations up to a multiple of 16
          std::fill(row + channels, row + (channels + 15) / 16 * 16, 0.0f);
      }
      if (done == 0 && !step.kept_states.empty())
        for (uint64_t j = 0; j + 1 < taps; ++j)
          std::memcpy(step.kept_states[state] + first + j * channels, window + (j + 1) * kBlock, count * sizeof(float));
      std::memmove(window, window + tokens * kBlock, (taps - 1) * kBlock * sizeof(float));
    }
    for (uint64_t j = 0; j + 1 < taps; ++j)
      std::memcpy(kept + j * channels, window + j * kBlock, count * sizeof(float));
  }
}

Status ConvolutionCall::resolve(const Resolver& resolver, ProgramFacts& facts, uint32_t weight_index,
                                uint32_t state_index, uint64_t channel_count, uint64_t tap_count, const char* what) {
  if (tap_count < 2 || tap_count > kMaxTaps)
    return invalid(std::string(what) + ": it has " + std::to_string(tap_count) + " taps");
  channels = channel_count;
  taps = tap_count;
  CORTIQ_ASSIGN_OR_RETURN(weight, resolver.vector(weight_index, channels * taps, what));
  CORTIQ_ASSIGN_OR_RETURN(state, take_state(resolver, facts, state_index, {taps - 1, channels}, what));
  return {};
}

} // namespace cortiq::runtime
#endif

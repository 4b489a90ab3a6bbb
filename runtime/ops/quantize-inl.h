// Vector code shared by the operations that end in a quantization; included once a target, see Highway's
// foreach_target.h.
#if defined(CORTIQ_RUNTIME_OPS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORTIQ_RUNTIME_OPS_QUANTIZE_INL_H_
#undef CORTIQ_RUNTIME_OPS_QUANTIZE_INL_H_
#else
#define CORTIQ_RUNTIME_OPS_QUANTIZE_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#include "formats/artifact/kernel_abi.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that they divide a group's half.
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;

/// Zeros from `count` to the next multiple of 16, as the exact arm's activations want them.
HWY_INLINE void zero_tail(float* row, uint64_t count) {
  for (uint64_t i = count; i % 16 != 0; ++i)
    row[i] = 0;
}

/// Quantizes 32 values as group `group` of a q8a record.
HWY_INLINE void quantize_group(const float* x, uint64_t group, const formats::Q8ActLayout& layout, uint8_t* record) {
  const F32 d;
  const I32 di;
  const hn::Rebind<int8_t, F32> d8;
  const size_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(d);
  auto poison = hn::Zero(d); // becomes NaN when a value is not finite
  for (size_t i = 0; i < 32; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, hn::Abs(v));
    poison = hn::MulAdd(v, hn::Zero(d), poison);
  }
  const float absmax = hn::GetLane(hn::MaxOfLanes(d, largest));
  float scale = absmax / 127.0f + hn::GetLane(hn::SumOfLanes(d, poison));
  auto* codes = reinterpret_cast<int8_t*>(record) + 32 * group;
  int32_t sums[2] = {0, 0};
  if (scale != 0 && scale == scale) {
    const auto divisor = hn::Set(d, scale);
    const auto limit = hn::Set(d, 127.0f);
    for (size_t half = 0; half < 2; ++half) {
      auto sum = hn::Zero(di);
      for (size_t i = 16 * half; i < 16 * half + 16; i += lanes) {
        const auto level = hn::Div(hn::LoadU(d, x + i), divisor);
        const auto code = hn::NearestInt(hn::Max(hn::Min(level, limit), hn::Neg(limit)));
        hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
        sum = hn::Add(sum, code);
      }
      sums[half] = hn::GetLane(hn::SumOfLanes(di, sum));
    }
  } else {
    std::memset(codes, 0, 32);
  }
  const int32_t total = sums[0] + sums[1];
  const float msum = scale * static_cast<float>(total);
  std::memcpy(record + layout.scale + 4 * group, &scale, 4);
  std::memcpy(record + layout.msum + 4 * group, &msum, 4);
  std::memcpy(record + layout.sum32 + 4 * group, &total, 4);
  std::memcpy(record + layout.sum16 + 8 * group, sums, 8);
}

/// 32 values as bf16, as kernel_abi.h's q8a_bf16 has them.
HWY_INLINE void round_group(const float* x, uint16_t* values) {
  const F32 d;
  const hn::RebindToUnsigned<F32> du;
  const hn::Rebind<uint16_t, F32> d16;
  for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    const auto bits = hn::BitCast(du, v);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(du, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))));
    const auto small = hn::RebindMask(du, hn::Lt(hn::Abs(v), hn::Set(d, 0x1p-126f)));
    const auto whole = hn::IfThenElse(small, hn::And(upper, hn::Set(du, 0x8000u)), rounded);
    const auto not_a_number = hn::RebindMask(du, hn::IsNaN(v));
    hn::StoreU(hn::TruncateTo(d16, hn::IfThenElse(not_a_number, hn::Or(upper, hn::Set(du, 0x40u)), whole)), d16,
               values + i);
  }
}

/// Quantizes elements [begin, end) of a row of `k`; `begin` is a multiple of 32, `end` too or equal to k. `x` points at
/// element `begin`. `bf16`: the record is followed by the same in bf16.
HWY_INLINE void quantize_range(const float* x, uint64_t begin, uint64_t end, uint64_t k, uint8_t* record, bool bf16) {
  const formats::Q8ActLayout layout = formats::q8_act_layout(k);
  auto* values = reinterpret_cast<uint16_t*>(record + formats::bf16_act_layout(k).values);
  const auto write = [&](const float* group, uint64_t at) {
    quantize_group(group, at / 32, layout, record);
    if (bf16)
      round_group(group, values + at);
  };
  uint64_t i = begin;
  for (; i + 32 <= end; i += 32)
    write(x + (i - begin), i);
  if (i < end) {
    float padded[32] = {};
    std::memcpy(padded, x + (i - begin), (end - i) * sizeof(float));
    write(padded, i);
  }
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#endif

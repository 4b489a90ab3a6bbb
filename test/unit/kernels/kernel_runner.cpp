#include "test/unit/kernels/kernel_runner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "formats/layout/layout.h"

namespace cortiq::test {

using namespace formats;

std::vector<uint8_t> quantize_q8a(const std::vector<float>& x) {
  const Q8ActLayout a = q8_act_layout(x.size());
  std::vector<uint8_t> record(a.bytes, 0);
  for (uint64_t g = 0; g < a.groups; ++g) {
    float top = 0;
    for (uint64_t i = 32 * g; i < std::min<uint64_t>(x.size(), 32 * g + 32); ++i)
      top = std::max(top, std::fabs(x[i]));
    const float scale = top / 127.0f;
    int32_t sums[2] = {0, 0};
    for (uint64_t i = 32 * g; i < std::min<uint64_t>(x.size(), 32 * g + 32); ++i) {
      const float q = scale > 0 ? std::nearbyintf(x[i] / scale) : 0.0f;
      const int8_t code = int8_t(std::min(127.0f, std::max(-127.0f, q)));
      record[i] = uint8_t(code);
      sums[i % 32 / 16] += code;
    }
    const int32_t sum = sums[0] + sums[1];
    const float msum = scale * float(sum);
    std::memcpy(&record[a.scale + 4 * g], &scale, 4);
    std::memcpy(&record[a.msum + 4 * g], &msum, 4);
    std::memcpy(&record[a.sum32 + 4 * g], &sum, 4);
    std::memcpy(&record[a.sum16 + 8 * g], sums, 8);
  }
  return record;
}

namespace {

/// What a q8a record stands for.
std::vector<double> dequantize_q8a(const std::vector<uint8_t>& record, uint64_t k) {
  const Q8ActLayout a = q8_act_layout(k);
  std::vector<double> x(k);
  for (uint64_t i = 0; i < k; ++i) {
    float scale;
    std::memcpy(&scale, &record[a.scale + i / 32 * 4], 4);
    x[i] = double(scale) * int8_t(record[i]);
  }
  return x;
}

float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

/// The nearest bf16, halves to even. Weights and activations here are no subnormals.
uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Whether kernels leave the scale out of the weights until a row's sum is made.
bool scales_sums(CodecId codec) {
  constexpr CodecId kAll[] = {CodecId::kQ8Row, CodecId::kQ82F, CodecId::kI8_S,
                              CodecId::kI2_S,  CodecId::kBLRU, CodecId::kBLRV};
  return std::find(std::begin(kAll), std::end(kAll), codec) != std::end(kAll);
}

void append(std::vector<uint8_t>& bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i)
    bytes.push_back(uint8_t(value >> (8 * i)));
}

/// An f16 of either sign, between 1/32 and 1/8.
uint16_t random_half(std::mt19937_64& random) {
  return uint16_t(0x2800 + (random() & 0x7ff) + (random() & 1 ? 0x8000 : 0));
}

/// The overlay of a packed tensor: rows with none, a few and many entries.
std::vector<uint8_t> random_overlay(const Codec& codec, uint64_t rows, uint64_t k, std::mt19937_64& random) {
  const bool counts_rows = codec.id == CodecId::kQ1T; // else every entry says its row
  std::vector<uint8_t> table, entries;
  uint32_t count = 0;
  for (uint64_t r = 0; r < rows; ++r) {
    append(table, count, 4);
    const uint64_t one_in = r % 4 == 1 ? 0 : r % 4 == 3 ? 2 : 20;
    for (uint64_t i = 0; i < k; ++i) {
      if (one_in == 0 || random() % one_in != 0)
        continue;
      append(entries, counts_rows ? i : r * k + i, counts_rows ? 2 : 4);
      append(entries, random_half(random), 2);
      ++count;
    }
  }
  std::vector<uint8_t> overlay;
  if (counts_rows)
    overlay = table;
  append(overlay, count, 4);
  overlay.insert(overlay.end(), entries.begin(), entries.end());
  return overlay;
}

/// A payload of rows of every bit width, with their offsets or without.
std::vector<uint8_t> random_widths(bool offsets, uint64_t rows, uint64_t k, std::mt19937_64& random) {
  constexpr uint8_t kWidths[] = {3, 4, 5, 6, 8};
  std::vector<uint8_t> payload, table;
  uint64_t streams = 0;
  for (uint64_t r = 0; r < rows; ++r) {
    payload.push_back(kWidths[random() % 5]);
    append(table, streams, 4);
    streams += payload.back() * (k / 8);
  }
  append(table, streams, 4);
  for (uint64_t g = 0; g < rows * (k / 32); ++g)
    append(payload, random_half(random), 2);
  if (offsets)
    payload.insert(payload.end(), table.begin(), table.end());
  for (uint64_t i = 0; i < streams; ++i)
    payload.push_back(uint8_t(random()));
  return payload;
}

/// A valid packed tensor, without tail padding.
std::vector<uint8_t> random_weights(const codegen::KernelSpec& spec, uint64_t rows, uint64_t seed) {
  const Codec& codec = codec_info(spec.codec);
  std::mt19937_64 random(seed);
  if (codec.id == CodecId::kVBit || codec.id == CodecId::kVBitRO)
    return random_widths(codec.id == CodecId::kVBitRO, rows, spec.k, random);
  std::vector<uint8_t> weights(*packed_bytes(codec, spec.layout, rows, spec.k));
  EXPECT_TRUE(fill_random(codec, spec.layout, rows, spec.k, seed, weights).ok());
  if (codec.variable_size) {
    const std::vector<uint8_t> overlay = random_overlay(codec, rows, spec.k, random);
    weights.resize(*overlay_offset(codec, spec.layout, rows, spec.k));
    weights.insert(weights.end(), overlay.begin(), overlay.end());
  }
  EXPECT_TRUE(check_packed(codec, spec.layout, weights, rows, spec.k).ok());
  return weights;
}

} // namespace

KernelData make_kernel_data(const KernelProblem& problem, Data kind, uint64_t seed) {
  const codegen::KernelSpec& spec = problem.spec;
  const Codec& codec = codec_info(spec.codec);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  KernelData d;
  d.rows = problem.groups * spec.rows;
  d.weights = random_weights(spec, d.rows, seed);
  const uint64_t bytes = d.weights.size();
  d.weights.resize(bytes + kLayoutTailPadding);

  const bool fast = spec.arm == codegen::Arm::kFast, bf16 = spec.arm == codegen::Arm::kBf16;
  const Bf16ActLayout layout = bf16_act_layout(spec.k);
  d.act_stride = fast ? q8_act_layout(spec.k).bytes : bf16 ? layout.bytes : f32_act_bytes(spec.k);
  // Kernels for many tokens read whole blocks.
  d.act.resize(d.act_stride * (codegen::takes_many(spec) ? tile_kernel_tokens(spec.tokens) : spec.tokens), 0x55);
  d.out_stride = (d.rows * 4 + 63) / 64 * 64;
  std::vector<std::vector<double>> x(spec.tokens);
  for (uint32_t t = 0; t < spec.tokens; ++t) {
    std::vector<float> values(spec.k);
    for (uint64_t i = 0; i < spec.k; ++i)
      values[i] = kind == Data::kZero       ? 0.0f
                  : kind == Data::kExtremes ? (t % 2 || i % 2 ? 1.0f : -1.0f)
                                            : normal(random) * (i % 61 ? 1.0f : 12.0f);
    if (codec.column_scales) { // the caller multiplies column scales into the activations
      const auto* columns = reinterpret_cast<const uint16_t*>(d.weights.data());
      for (uint64_t i = 0; i < spec.k; ++i)
        values[i] *= f16_to_f32(columns[i]);
    }
    if (fast) {
      std::vector<uint8_t> record = quantize_q8a(values);
      std::copy(record.begin(), record.end(), d.act.begin() + t * d.act_stride);
      x[t] = dequantize_q8a(record, spec.k);
    } else if (bf16) {
      uint8_t* of_token = &d.act[t * d.act_stride + layout.values];
      std::memset(of_token, 0, 64 * q8_act_layout(spec.k).groups);
      for (uint64_t i = 0; i < spec.k; ++i) {
        const uint16_t rounded = to_bf16(values[i]);
        std::memcpy(of_token + 2 * i, &rounded, 2);
        x[t].push_back(from_bf16(rounded));
      }
    } else {
      std::memcpy(&d.act[t * d.act_stride], values.data(), spec.k * 4);
      x[t].assign(values.begin(), values.end());
    }
  }
  if (spec.residual) {
    d.residual.resize(d.out_stride / 4 * spec.tokens);
    for (float& r : d.residual)
      r = normal(random);
  }
  if (spec.bias) {
    d.bias.resize(d.rows);
    for (float& b : d.bias)
      b = normal(random);
  }
  std::vector<float> w(spec.k);
  d.expected.resize(spec.tokens * d.rows);
  d.magnitude.resize(spec.tokens * d.rows);
  for (uint64_t r = 0; r < d.rows; ++r) {
    EXPECT_TRUE(decode_packed_row(codec, spec.layout, {d.weights.data(), bytes}, d.rows, spec.k, r, w.data()).ok());
    for (uint32_t t = 0; t < spec.tokens; ++t) {
      double sum = 0, magnitude = 0;
      for (uint64_t i = 0; i < spec.k; ++i) {
        double weight = bf16 && !scales_sums(spec.codec) ? from_bf16(to_bf16(w[i])) : w[i];
        if (codec.column_scales) { // its column scale sits in x already
          const auto* columns = reinterpret_cast<const uint16_t*>(d.weights.data());
          weight /= f16_to_f32(columns[i]);
        }
        sum += weight * x[t][i];
        magnitude += std::fabs(weight * x[t][i]);
      }
      if (spec.bias)
        sum += d.bias[r];
      if (spec.residual)
        sum += d.residual[t * d.out_stride / 4 + r];
      d.expected[t * d.rows + r] = sum;
      d.magnitude[t * d.rows + r] = magnitude + (spec.bias ? std::fabs(d.bias[r]) : 0) +
                                    (spec.residual ? std::fabs(d.residual[t * d.out_stride / 4 + r]) : 0);
    }
  }
  return d;
}

std::vector<float> run_kernel(const KernelProblem& problem, const KernelData& data,
                              const std::function<void(const KernelArgs*)>& kernel) {
  const codegen::KernelSpec& spec = problem.spec;
  constexpr float kGuard = -12345.0f;
  const uint64_t floats = data.out_stride / 4;
  std::vector<float> out(floats * spec.tokens + 32, kGuard);
  // Whatever an earlier kernel left there.
  static thread_local std::vector<uint8_t> memory;
  memory.resize(std::max<uint64_t>(memory.size(), (spec.arm == codegen::Arm::kBf16
                                                       ? bf16_kernel_scratch_bytes(spec.k, spec.tokens)
                                                       : many_kernel_scratch_bytes(spec.k, spec.tokens,
                                                                                   spec.arm == codegen::Arm::kExact)) +
                                                      64),
                0xff);
  uint8_t* scratch = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  const bool packed = spec.layout == LayoutId::kR16;
  const R16Format format = packed ? *r16_format(codec_info(spec.codec), spec.k) : R16Format{};
  // The first group by itself, then the others: a matrix may be cut between any of them.
  for (uint64_t group = 0; group < problem.groups; group = group ? problem.groups : 1) {
    const uint64_t row = group * spec.rows;
    KernelArgs args{};
    args.tensor = data.weights.data();
    args.weights = data.weights.data() + format.tensor_bytes + (packed ? row * format.row_bytes() : 0);
    args.act = data.act.data();
    args.out = out.data() + 16 + row;
    args.residual = spec.residual ? data.residual.data() + row : nullptr;
    args.bias = spec.bias ? data.bias.data() + row : nullptr;
    args.scratch = scratch;
    args.groups = group ? problem.groups - 1 : 1;
    args.act_stride = data.act_stride;
    args.out_stride = data.out_stride;
    args.residual_stride = data.out_stride;
    args.first_row = row;
    args.tensor_rows = data.rows;
    args.tokens = spec.tokens;
    kernel(&args);
  }
  std::vector<float> result;
  for (uint64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], kGuard) << "written in front of the output";
    EXPECT_EQ(out[out.size() - 1 - i], kGuard) << "written behind the output";
  }
  for (uint32_t t = 0; t < spec.tokens; ++t) {
    const float* row = out.data() + 16 + t * floats;
    result.insert(result.end(), row, row + data.rows);
    for (uint64_t i = data.rows; i < floats; ++i)
      EXPECT_EQ(row[i], kGuard) << "written behind the last row of token " << t;
  }
  return result;
}

} // namespace cortiq::test

#include "test/unit/kernels/kernel_runner.h"

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

} // namespace

KernelData make_kernel_data(const KernelProblem& problem, Data kind, uint64_t seed) {
  const codegen::KernelSpec& spec = problem.spec;
  const Codec& codec = codec_info(spec.codec);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  KernelData d;
  d.rows = problem.groups * spec.rows;
  const uint64_t bytes = *packed_bytes(codec, spec.layout, d.rows, spec.k);
  d.weights.resize(bytes + kLayoutTailPadding);
  EXPECT_TRUE(fill_random(codec, spec.layout, d.rows, spec.k, seed, {d.weights.data(), bytes}).ok());

  const bool fast = spec.arm == codegen::Arm::kFast;
  d.act_stride = fast ? q8_act_layout(spec.k).bytes : f32_act_bytes(spec.k);
  d.act.resize(d.act_stride * spec.tokens);
  d.out_stride = (d.rows * 4 + 63) / 64 * 64;
  std::vector<std::vector<double>> x(spec.tokens);
  for (uint32_t t = 0; t < spec.tokens; ++t) {
    std::vector<float> values(spec.k);
    for (uint64_t i = 0; i < spec.k; ++i)
      values[i] = kind == Data::kZero       ? 0.0f
                  : kind == Data::kExtremes ? (t % 2 || i % 2 ? 1.0f : -1.0f)
                                            : normal(random) * (i % 61 ? 1.0f : 12.0f);
    if (spec.codec == CodecId::kQ82F) { // the caller multiplies column scales into the activations
      const auto* columns = reinterpret_cast<const uint16_t*>(d.weights.data());
      for (uint64_t i = 0; i < spec.k; ++i)
        values[i] *= f16_to_f32(columns[i]);
    }
    if (fast) {
      std::vector<uint8_t> record = quantize_q8a(values);
      std::copy(record.begin(), record.end(), d.act.begin() + t * d.act_stride);
      x[t] = dequantize_q8a(record, spec.k);
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
        double weight = w[i];
        if (spec.codec == CodecId::kQ82F) { // its column scale sits in x already
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
  alignas(64) static thread_local uint8_t scratch[kKernelScratchBytes];
  const bool packed = spec.layout == LayoutId::kR16;
  const uint64_t tensor_bytes = packed ? r16_format(codec_info(spec.codec), spec.k)->tensor_bytes : 0;
  KernelArgs args{};
  args.tensor = data.weights.data();
  args.weights = data.weights.data() + tensor_bytes;
  args.act = data.act.data();
  args.out = out.data() + 16;
  args.residual = data.residual.data();
  args.bias = data.bias.data();
  args.scratch = scratch;
  args.groups = problem.groups;
  args.act_stride = data.act_stride;
  args.out_stride = data.out_stride;
  args.residual_stride = data.out_stride;
  args.tensor_rows = data.rows;
  kernel(&args);
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

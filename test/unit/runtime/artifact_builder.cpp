#include "test/unit/runtime/artifact_builder.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "formats/artifact/kernel_abi.h"
#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

namespace cortiq::test {

using formats::CodecId;
using formats::LayoutId;

namespace {

/// What the kernel for prompts takes at most: fewer than models' batches.
constexpr uint32_t kPromptTokens = 5;

uint64_t record_bytes(artifact::BufferKind kind, uint64_t elements) {
  switch (kind) {
  case artifact::BufferKind::Q8Act:
    return formats::q8_act_layout(elements).bytes;
  case artifact::BufferKind::Q8Bf16Act:
    return formats::bf16_act_layout(elements).bytes;
  default:
    return formats::f32_act_bytes(elements);
  }
}

} // namespace

uint32_t ArtifactBuilder::slot(uint64_t elements, artifact::BufferKind kind, uint32_t records) {
  auto buffer = std::make_unique<artifact::BufferT>();
  buffer->kind = kind;
  buffer->elements = elements;
  buffer->bytes_per_token = records * record_bytes(kind, elements);
  buffer->records = records;
  buffer->offset_per_token = program.arena_bytes_per_token;
  program.arena_bytes_per_token += buffer->bytes_per_token;
  program.buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(program.buffers.size() - 1);
}

uint32_t ArtifactBuilder::matrix(const std::string& name, uint64_t rows, uint64_t cols,
                                 const std::vector<float>& values) {
  const formats::Codec& codec = formats::codec_info(CodecId::kF32);
  std::vector<uint8_t> packed(*formats::packed_bytes(codec, LayoutId::kR16, rows, cols));
  EXPECT_TRUE(formats::pack(codec, LayoutId::kR16,
                            {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)}, rows,
                            cols, {}, packed)
                  .ok());
  auto weight = std::make_unique<artifact::WeightT>();
  weight->name = name;
  weight->codec = static_cast<uint16_t>(CodecId::kF32);
  weight->layout = static_cast<uint8_t>(LayoutId::kR16);
  weight->rows = rows;
  weight->cols = cols;
  weight->bytes = packed.size();
  manifest.weights.push_back(std::move(weight));
  packed_.push_back(std::move(packed));
  return static_cast<uint32_t>(packed_.size() - 1);
}

uint32_t ArtifactBuilder::vector(const std::string& name, const std::vector<float>& values) {
  auto weight = std::make_unique<artifact::WeightT>();
  weight->name = name;
  weight->codec = static_cast<uint16_t>(CodecId::kF32);
  weight->layout = static_cast<uint8_t>(LayoutId::kVerbatim);
  weight->rows = 1;
  weight->cols = values.size();
  weight->bytes = values.size() * sizeof(float);
  manifest.weights.push_back(std::move(weight));
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  packed_.push_back(std::move(bytes));
  return static_cast<uint32_t>(packed_.size() - 1);
}

uint32_t ArtifactBuilder::mixture(const std::string& name, uint32_t own, const std::vector<uint32_t>& alternatives) {
  auto weight = std::make_unique<artifact::WeightT>(*manifest.weights[own]);
  weight->name = name;
  weight->bytes = 0;
  auto add = [&](uint32_t skill, uint32_t index) {
    weight->blend.push_back(std::make_unique<artifact::BlendPartT>());
    weight->blend.back()->skill = skill;
    weight->blend.back()->weight = index;
  };
  add(0xffffffff, own);
  for (size_t s = 0; s < alternatives.size(); ++s)
    add(static_cast<uint32_t>(s), alternatives[s]);
  manifest.weights.push_back(std::move(weight));
  packed_.emplace_back();
  return static_cast<uint32_t>(packed_.size() - 1);
}

std::vector<uint32_t> ArtifactBuilder::kernels(uint32_t rows, uint64_t k, bool bias, bool residual) {
  std::vector<uint32_t> out;
  for (const uint32_t tokens : {1u, 2u, 4u})
    out.push_back(
        kernel({tokens, rows, k, bias, residual, numbers == Numbers::kF32 ? ScalarInput::kF32 : ScalarInput::kCodes}));
  if (numbers == Numbers::kHalfPrompts)
    out.push_back(kernel({kPromptTokens, rows, k, bias, residual, ScalarInput::kBf16}));
  return out;
}

uint32_t ArtifactBuilder::kernel(const ScalarKernelSpec& spec) {
  constexpr const char* kInputs[] = {"f32", "q8a", "bf16"};
  constexpr artifact::BufferKind kKinds[] = {artifact::BufferKind::F32, artifact::BufferKind::Q8Act,
                                             artifact::BufferKind::Q8Bf16Act};
  const auto input = static_cast<size_t>(spec.input);
  const std::string name = std::string("gemm_f32_") + kInputs[input] + "_f32_r16_k" + std::to_string(spec.k) + "_" +
                           std::to_string(spec.tokens) + "x" + std::to_string(spec.rows) + (spec.bias ? "_bias" : "") +
                           (spec.residual ? "_res" : "") + "_scalar";
  const auto [place, fresh] = kernel_index_.emplace(name, static_cast<uint32_t>(program.kernels.size()));
  if (!fresh)
    return place->second;
  code_.push_back({name, scalar_kernel(spec)});
  auto kernel = std::make_unique<artifact::KernelT>();
  kernel->name = name;
  kernel->tokens = spec.tokens;
  kernel->rows = spec.rows;
  kernel->k = spec.k;
  kernel->codec = static_cast<uint16_t>(CodecId::kF32);
  kernel->layout = static_cast<uint8_t>(LayoutId::kR16);
  kernel->act = kKinds[input];
  kernel->bias = spec.bias;
  kernel->residual = spec.residual;
  kernel->from_tokens = spec.input == ScalarInput::kBf16 ? 1 : 0;
  program.kernels.push_back(std::move(kernel));
  return place->second;
}

uint32_t ArtifactBuilder::quantized(uint32_t input) {
  artifact::QuantizeOpT op;
  op.input = input;
  op.act_out = slot(program.buffers[input]->elements, artifact::BufferKind::Q8Bf16Act);
  const uint32_t out = op.act_out;
  stage(std::move(op), program.stages.back()->head);
  return out;
}

artifact::MatmulPartT ArtifactBuilder::matmul(uint32_t weight, uint32_t input, uint32_t out, uint32_t bias,
                                              uint32_t residual) {
  return product(weight, numbers == Numbers::kF32 ? input : quantized(input), out, bias, residual);
}

artifact::MatmulPartT ArtifactBuilder::product(uint32_t weight, uint32_t input, uint32_t out, uint32_t bias,
                                               uint32_t residual) {
  const artifact::WeightT& entry = *manifest.weights[weight];
  artifact::MatmulPartT part;
  part.weight = weight;
  part.input = input;
  part.out = out;
  part.bias = bias;
  part.residual = residual;
  const bool has_bias = bias != 0xffffffff, has_residual = residual != 0xffffffff;
  if (entry.rows >= 16)
    part.kernels = kernels(16, entry.cols, has_bias, has_residual);
  if (entry.rows % 16 != 0)
    part.tail_kernels = kernels(static_cast<uint32_t>(entry.rows % 16), entry.cols, has_bias, has_residual);
  return part;
}

artifact::ExpertPartT ArtifactBuilder::expert(uint32_t weight, uint32_t input, uint32_t token, uint32_t out,
                                              uint32_t bias) {
  const artifact::MatmulPartT own = product(weight, input, out, bias, 0xffffffff);
  artifact::ExpertPartT part;
  part.weight = weight;
  part.kernels = own.kernels;
  part.tail_kernels = own.tail_kernels;
  part.input = input;
  part.token = token;
  part.out = out;
  part.bias = bias;
  return part;
}

void ArtifactBuilder::products(std::initializer_list<artifact::MatmulPartT> parts, bool head) {
  artifact::MatmulOpT op;
  for (const artifact::MatmulPartT& part : parts)
    op.parts.push_back(std::make_unique<artifact::MatmulPartT>(part));
  stage(std::move(op), head);
}

void ArtifactBuilder::kv_layer(uint64_t kv_heads, uint64_t dim, uint64_t window, bool ring) {
  auto kv = std::make_unique<artifact::KvLayerT>();
  kv->kv_heads = static_cast<uint32_t>(kv_heads);
  kv->k_dim = kv->v_dim = static_cast<uint32_t>(dim);
  kv->window = static_cast<uint32_t>(window);
  kv->ring = ring;
  program.kv_layers.push_back(std::move(kv));
}

void ArtifactBuilder::begin_stage(bool head) {
  program.stages.push_back(std::make_unique<artifact::StageT>());
  program.stages.back()->head = head;
}

compiler::ArtifactContents ArtifactBuilder::contents() {
  compiler::ArtifactContents out;
  out.kernels = code_;
  const auto placement = compiler::placeKernels(out.kernels);
  EXPECT_TRUE(placement.ok());
  EXPECT_TRUE(compiler::setKernelOffsets(program, out.kernels, *placement).ok());
  out.program = compiler::serializeProgram(program);
  manifest.architecture = "test";
  manifest.compiler_version = "0";
  manifest.target = targets.empty() ? "x86-64" : targets[0];
  manifest.targets.clear();
  const std::vector<uint8_t> one = out.program;
  for (const std::string& name : targets) {
    auto row = std::make_unique<artifact::TargetT>();
    row->name = name;
    row->features = manifest.features;
    if (!manifest.targets.empty()) {
      out.program.resize((out.program.size() + 63) / 64 * 64);
      row->program_offset = out.program.size();
      out.program.insert(out.program.end(), one.begin(), one.end());
    }
    row->program_bytes = one.size();
    manifest.targets.push_back(std::move(row));
  }
  manifest.max_batch = static_cast<uint32_t>(max_batch_);
  manifest.weights_embedded = embed_weights;
  out.manifest = manifest;
  out.provenance = "made by a test";
  out.weights = [this](size_t index, std::span<uint8_t> bytes) {
    std::copy_n(packed_[index].begin(), bytes.size(), bytes.begin());
    return Status();
  };
  return out;
}

Status ArtifactBuilder::write(const std::string& path, const compiler::WriteOptions& options) {
  return compiler::writeArtifact(path, contents(), options);
}

std::vector<float> RandomWeights::numbers(uint64_t count, float spread) {
  std::uniform_real_distribution<float> distribution(-spread, spread);
  std::vector<float> out(count);
  for (float& value : out)
    value = distribution(random_);
  return out;
}

uint32_t RandomWeights::matrix(uint64_t rows, uint64_t cols, float spread) {
  return builder_.matrix("m" + std::to_string(names_++), rows, cols, numbers(rows * cols, spread));
}

uint32_t RandomWeights::vector(uint64_t count, float spread) {
  return builder_.vector("v" + std::to_string(names_++), numbers(count, spread));
}

} // namespace cortiq::test

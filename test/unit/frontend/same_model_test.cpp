// One model, written as CMF and as GGUF, is one module: the same operations and numbers, and the same logits bit for
// bit.

#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/LoadModel.h"
#include "dialects/CMF/Interp/Interpreter.h"
#include "formats/cmf/cmf_writer.h"
#include "mlir/IR/MLIRContext.h"
#include "test/unit/base/test_files.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::compiler {
namespace {

using formats::GgufBuilder;
using formats::GgufType;

constexpr int kHidden = 16, kLayers = 2, kHeads = 2, kHeadDim = 8, kWidth = 24, kVocab = 20;
constexpr uint32_t kGgufF32 = 0;
constexpr int kCmfF32 = 0;

struct Case {
  std::string architecture;
  bool neighbours = false; ///< the GGUF file has query and key rows in pairs of neighbours
  bool biases = false;
  bool headNorms = false;
  bool fusedQkv = false;
  bool tied = false;
  bool frequencyFactors = false;
  std::vector<int32_t> kvHeads = {1, 1};
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.architecture;
}

struct Values {
  std::vector<uint64_t> shape; ///< outermost first
  std::vector<float> data;
};

std::span<const uint8_t> bytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
}

// The rows as a converter stores them: canonical row s*d/2 + i of a head becomes row 2i + s.
Values interleaved(const Values& canonical) {
  Values out = canonical;
  const size_t cols = canonical.data.size() / canonical.shape[0];
  for (size_t row = 0; row < canonical.shape[0]; ++row) {
    const size_t in = row % kHeadDim, half = kHeadDim / 2, to = row - in + 2 * (in % half) + in / half;
    std::copy_n(canonical.data.begin() + row * cols, cols, out.data.begin() + to * cols);
  }
  return out;
}

class SameModel : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    std::mt19937 random(7);
    auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
      Values& v = canonical_[name];
      v.shape = shape;
      uint64_t n = 1;
      for (uint64_t dim : shape)
        n *= dim;
      for (uint64_t i = 0; i < n; ++i)
        v.data.push_back((static_cast<int>(random() % 2001) - 1000) / 2500.0f);
    };
    add("model.embed_tokens.weight", {kVocab, kHidden});
    add("model.norm.weight", {kHidden});
    if (!GetParam().tied)
      add("lm_head.weight", {kVocab, kHidden});
    for (int i = 0; i < kLayers; ++i) {
      const std::string p = "model.layers." + std::to_string(i) + ".";
      const uint64_t q = kHeads * kHeadDim, kv = GetParam().kvHeads[i] * kHeadDim;
      add(p + "input_layernorm.weight", {kHidden});
      add(p + "post_attention_layernorm.weight", {kHidden});
      for (auto [name, rows] : {std::pair("q", q), std::pair("k", kv), std::pair("v", kv)}) {
        add(p + "self_attn." + name + "_proj.weight", {rows, kHidden});
        if (GetParam().biases)
          add(p + "self_attn." + name + "_proj.bias", {rows});
      }
      if (GetParam().headNorms) {
        add(p + "self_attn.q_norm.weight", {kHeadDim});
        add(p + "self_attn.k_norm.weight", {kHeadDim});
      }
      add(p + "self_attn.o_proj.weight", {kHidden, q});
      add(p + "mlp.gate_proj.weight", {kWidth, kHidden});
      add(p + "mlp.up_proj.weight", {kWidth, kHidden});
      add(p + "mlp.down_proj.weight", {kHidden, kWidth});
    }
  }

  void writeCmf(const std::string& path) const {
    nlohmann::json arch = {{"arch_name", GetParam().architecture},
                           {"hidden_size", kHidden},
                           {"intermediate_size", kWidth},
                           {"num_layers", kLayers},
                           {"num_attention_heads", kHeads},
                           {"num_kv_heads", 1},
                           {"head_dim", kHeadDim},
                           {"vocab_size", kVocab},
                           {"layer_types", {"FullAttention", "FullAttention"}},
                           {"rms_norm_eps", 1e-5},
                           {"max_position_embeddings", 128},
                           {"rope_theta", 5000.0},
                           {"tie_word_embeddings", GetParam().tied},
                           {"kv_heads_per_layer", GetParam().kvHeads}};
    if (GetParam().frequencyFactors)
      arch["rope_freq_factors"] = factors_;
    formats::CmfWriter writer({{"arch", arch}, {"quant_type", "F32"}});
    for (const auto& [name, values] : canonical_)
      writer.add_tensor(name, kCmfF32, values.shape, bytesOf(values.data));
    const Status status = writer.write(path);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // The builder fills tensors with a pattern, so the values are put in place where the reader finds each tensor.
  void writeGguf(const std::string& path) const {
    const std::string a = GetParam().architecture + ".";
    GgufBuilder builder;
    builder.text("general.architecture", GetParam().architecture)
        .number(a + "block_count", GgufType::kU32, uint32_t{kLayers})
        .number(a + "context_length", GgufType::kU64, uint64_t{128})
        .number(a + "embedding_length", GgufType::kI32, int32_t{kHidden})
        .number(a + "feed_forward_length", GgufType::kU32, uint32_t{kWidth})
        .number(a + "attention.head_count", GgufType::kU32, uint32_t{kHeads})
        .array(a + "attention.head_count_kv", GgufType::kI32, GetParam().kvHeads)
        .number(a + "attention.layer_norm_rms_epsilon", GgufType::kF64, 1e-5)
        .number(a + "rope.freq_base", GgufType::kF32, 5000.0f);
    const std::map<std::string, Values> tensors = ggufTensors();
    for (const auto& [name, values] : tensors)
      builder.tensor(name, std::vector<uint64_t>(values.shape.rbegin(), values.shape.rend()), kGgufF32,
                     values.data.size() * sizeof(float));
    builder.write(path);
    std::vector<uint8_t> bytes = builder.bytes();
    {
      StatusOr<formats::GgufFile> file = formats::GgufFile::open(path);
      ASSERT_TRUE(file.ok()) << file.status().message();
      for (const formats::Tensor& tensor : file->tensors())
        std::memcpy(bytes.data() + tensor.offset, tensors.at(tensor.name).data.data(), tensor.data.size());
    }
    test::write_bytes(path, bytes);
  }

  std::map<std::string, Values> ggufTensors() const {
    const std::pair<const char*, const char*> parts[] = {
        {"input_layernorm", "attn_norm"},    {"post_attention_layernorm", "ffn_norm"},
        {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
        {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
        {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"}};
    std::map<std::string, Values> out;
    out["token_embd.weight"] = canonical_.at("model.embed_tokens.weight");
    out["output_norm.weight"] = canonical_.at("model.norm.weight");
    if (!GetParam().tied)
      out["output.weight"] = canonical_.at("lm_head.weight");
    if (GetParam().frequencyFactors) {
      Values& factors = out["rope_freqs.weight"];
      factors.shape = {factors_.size()};
      factors.data.assign(factors_.begin(), factors_.end());
    }
    for (int i = 0; i < kLayers; ++i)
      for (const auto& [from, to] : parts)
        for (const char* suffix : {".weight", ".bias"}) {
          auto it = canonical_.find("model.layers." + std::to_string(i) + "." + from + suffix);
          if (it == canonical_.end())
            continue;
          const std::string name = to;
          const bool rotated = name == "attn_q" || name == "attn_k";
          Values values = rotated && GetParam().neighbours ? interleaved(it->second) : it->second;
          const bool joins = GetParam().fusedQkv && (rotated || name == "attn_v");
          Values& target = out["blk." + std::to_string(i) + "." + (joins ? "attn_qkv" : name) + suffix];
          if (target.data.empty()) {
            target = std::move(values);
            continue;
          }
          target.shape[0] += values.shape[0];
          target.data.insert(target.data.end(), values.data.begin(), values.data.end());
        }
    return out;
  }

  std::map<std::string, Values> canonical_;
  const std::vector<double> factors_ = {1, 1, 2, 8};
};

// The module without what says where bytes lie.
std::string normalized(mlir::ModuleOp module) {
  module.walk([](cmf::WeightOp op) {
    op.removeSourceAttr();
    op.removeRowsAttr();
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

TEST_P(SameModel, CmfAndGgufAreOneModule) {
  test::ScratchFolder folder;
  ASSERT_NO_FATAL_FAILURE(writeCmf(folder / "model.cmf"));
  ASSERT_NO_FATAL_FAILURE(writeGguf(folder / "model.gguf"));
  mlir::MLIRContext context;
  std::string texts[2];
  std::vector<float> logits[2];
  for (int i = 0; i < 2; ++i) {
    StatusOr<LoadedModel> model = loadModel(folder / (i == 0 ? "model.cmf" : "model.gguf"), context);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->warnings, std::vector<std::string>());
    StatusOr<cmf::Interpreter> interpreter = cmf::Interpreter::create(*model->module, *model->weights);
    ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
    StatusOr<std::span<const float>> out = interpreter->forward(std::vector<uint32_t>{1, 19, 4, 4, 0}, true);
    ASSERT_TRUE(out.ok()) << out.status().message();
    logits[i].assign(out->begin(), out->end());
    texts[i] = normalized(*model->module);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(logits[0], logits[1]);
}

INSTANTIATE_TEST_SUITE_P(
    Architectures, SameModel,
    testing::Values(
        Case{.architecture = "llama", .neighbours = true},
        Case{.architecture = "llama", .neighbours = true, .biases = true, .tied = true},
        Case{.architecture = "llama", .neighbours = true, .frequencyFactors = true, .kvHeads = {2, 1}},
        Case{.architecture = "llama", .neighbours = true, .biases = true, .fusedQkv = true, .kvHeads = {1, 2}},
        Case{.architecture = "qwen2", .biases = true}, Case{.architecture = "qwen3", .headNorms = true}));

} // namespace
} // namespace cortiq::compiler

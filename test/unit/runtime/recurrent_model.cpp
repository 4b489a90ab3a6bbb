#include "test/unit/runtime/recurrent_model.h"

#include <algorithm>
#include <random>
#include <vector>

#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

Status write_recurrent_model(const std::string& path, uint32_t window, bool ring) {
  constexpr uint64_t kHidden = 24, kKeyHeads = 2, kValueHeads = 4, kDim = 8, kHeads = 2;
  constexpr uint64_t kQkv = (2 * kKeyHeads + kValueHeads) * kDim, kValues = kValueHeads * kDim;
  ArtifactBuilder b(/*max_batch=*/12);
  std::mt19937 random(3);
  auto numbers = [&](uint64_t count, float spread) {
    std::uniform_real_distribution<float> distribution(-spread, spread);
    std::vector<float> out(count);
    for (float& value : out)
      value = distribution(random);
    return out;
  };
  int names = 0;
  auto matrix = [&](uint64_t rows, uint64_t cols) {
    return b.matrix(std::string("m").append(std::to_string(names++)), rows, cols, numbers(rows * cols, 0.5f));
  };
  auto vector = [&](uint64_t count) {
    return b.vector(std::string("v").append(std::to_string(names++)), numbers(count, 1));
  };
  auto state = [&](uint64_t count) {
    b.program.states.push_back(count);
    return static_cast<uint32_t>(b.program.states.size() - 1);
  };
  auto matmul = [&](uint32_t in, std::initializer_list<std::pair<uint32_t, uint64_t>> outs, uint64_t cols,
                    bool head = false) {
    artifact::MatmulOpT op;
    for (const auto& [slot, rows] : outs)
      op.parts.push_back(std::make_unique<artifact::MatmulPartT>(b.matmul(matrix(rows, cols), in, slot)));
    b.stage(std::move(op), head);
  };
  const uint32_t x = b.slot(kHidden), bcx = b.slot(3 * kHidden), s = b.slot(kHidden), qkv = b.slot(kQkv),
                 z = b.slot(kValues), a = b.slot(kValueHeads), beta = b.slot(kValueHeads), u = b.slot(kQkv),
                 g = b.slot(kValues), q = b.slot(kHeads * kDim), k = b.slot(kHeads * kDim), v = b.slot(kHeads * kDim),
                 attended = b.slot(kHeads * kDim), logits = b.slot(kRecurrentVocab);
  std::vector<float> embedding = numbers(kRecurrentVocab * kHidden, 1);
  std::fill(embedding.begin() + kRecurrentPoison * kHidden, embedding.end(), 1e5f);
  artifact::EmbedOpT embed;
  embed.weight = b.matrix("embed", kRecurrentVocab, kHidden, embedding);
  embed.out = x;
  b.stage(std::move(embed));
  matmul(x, {{bcx, 3 * kHidden}}, kHidden);
  artifact::ShortConvOpT short_conv;
  short_conv.input = bcx;
  short_conv.weight = vector(kHidden * 3);
  short_conv.state = state(2 * kHidden);
  short_conv.out = s;
  short_conv.taps = 3;
  b.stage(std::move(short_conv));
  matmul(s, {{qkv, kQkv}, {z, kValues}, {a, kValueHeads}, {beta, kValueHeads}}, kHidden);
  artifact::CausalConvOpT conv;
  conv.input = qkv;
  conv.weight = vector(kQkv * 4);
  conv.state = state(3 * kQkv);
  conv.out = u;
  conv.taps = 4;
  conv.silu = true;
  b.stage(std::move(conv));
  artifact::GatedDeltaOpT delta;
  delta.qkv = u;
  delta.z = z;
  delta.a = a;
  delta.b = beta;
  delta.decay = vector(kValueHeads);
  delta.dt_bias = vector(kValueHeads);
  delta.norm = vector(kDim);
  delta.state = state(kValueHeads * kDim * kDim);
  delta.out = g;
  delta.key_heads = kKeyHeads;
  delta.value_heads = kValueHeads;
  delta.key_dim = delta.value_dim = kDim;
  delta.eps = 1e-6f;
  b.stage(std::move(delta));
  matmul(g, {{q, kHeads * kDim}, {k, kHeads * kDim}, {v, kHeads * kDim}}, kValues);
  auto kv = std::make_unique<artifact::KvLayerT>();
  kv->kv_heads = kHeads;
  kv->k_dim = kv->v_dim = kDim;
  kv->window = window;
  kv->ring = ring;
  b.program.kv_layers.push_back(std::move(kv));
  artifact::AttentionPrepOpT prep;
  prep.q = q;
  prep.k = k;
  prep.v = v;
  prep.heads = kHeads;
  prep.head_dim = kDim;
  b.stage(std::move(prep));
  artifact::AttentionOpT attention;
  attention.q = q;
  attention.heads = kHeads;
  attention.head_dim = kDim;
  attention.scale = 0.3f;
  attention.out = attended;
  b.stage(std::move(attention));
  matmul(attended, {{logits, kRecurrentVocab}}, kHeads * kDim, /*head=*/true);
  b.program.logits = logits;
  b.manifest.vocab = kRecurrentVocab;
  b.manifest.max_context = 400;
  return b.write(path);
}

} // namespace cortiq::test

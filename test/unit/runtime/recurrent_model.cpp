#include "test/unit/runtime/recurrent_model.h"

#include <algorithm>
#include <vector>

namespace cortiq::test {

Status write_recurrent_model(const std::string& path, uint32_t window, bool ring, Numbers numbers) {
  constexpr uint64_t kHidden = 24, kKeyHeads = 2, kValueHeads = 4, kDim = 8, kHeads = 2;
  constexpr uint64_t kQkv = (2 * kKeyHeads + kValueHeads) * kDim, kValues = kValueHeads * kDim;
  ArtifactBuilder b(/*max_batch=*/12);
  b.numbers = numbers;
  RandomWeights weights(b, 3);
  auto vector = [&](uint64_t count) { return weights.vector(count, 1); };
  auto state = [&](uint64_t count) {
    b.program.states.push_back(count);
    return static_cast<uint32_t>(b.program.states.size() - 1);
  };
  auto part = [&](uint32_t in, uint64_t cols, uint32_t out, uint64_t rows) {
    return b.matmul(weights.matrix(rows, cols, 0.5f), in, out);
  };
  const uint32_t x = b.slot(kHidden), bcx = b.slot(3 * kHidden), s = b.slot(kHidden), qkv = b.slot(kQkv),
                 z = b.slot(kValues), a = b.slot(kValueHeads), beta = b.slot(kValueHeads), u = b.slot(kQkv),
                 g = b.slot(kValues), q = b.slot(kHeads * kDim), k = b.slot(kHeads * kDim), v = b.slot(kHeads * kDim),
                 attended = b.slot(kHeads * kDim), logits = b.slot(kRecurrentVocab);
  std::vector<float> embedding = weights.numbers(kRecurrentVocab * kHidden, 1);
  std::fill(embedding.begin() + kRecurrentPoison * kHidden, embedding.end(), 1e5f);
  artifact::EmbedOpT embed;
  embed.weight = b.matrix("embed", kRecurrentVocab, kHidden, embedding);
  embed.out = x;
  b.stage(std::move(embed));
  b.products({part(x, kHidden, bcx, 3 * kHidden)});
  artifact::ShortConvOpT short_conv;
  short_conv.input = bcx;
  short_conv.weight = vector(kHidden * 3);
  short_conv.state = state(2 * kHidden);
  short_conv.out = s;
  short_conv.taps = 3;
  b.stage(std::move(short_conv));
  b.products({part(s, kHidden, qkv, kQkv), part(s, kHidden, z, kValues), part(s, kHidden, a, kValueHeads),
              part(s, kHidden, beta, kValueHeads)});
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
  b.products(
      {part(g, kValues, q, kHeads * kDim), part(g, kValues, k, kHeads * kDim), part(g, kValues, v, kHeads * kDim)});
  b.kv_layer(kHeads, kDim, window, ring);
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
  b.products({part(attended, kHeads * kDim, logits, kRecurrentVocab)}, /*head=*/true);
  b.program.logits = logits;
  b.manifest.vocab = kRecurrentVocab;
  b.manifest.max_context = 400;
  return b.write(path);
}

} // namespace cortiq::test

#include "test/unit/runtime/window_model.h"

#include <random>
#include <vector>

#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

Status write_window_model(const std::string& path, bool ring, uint64_t max_context, uint32_t window) {
  constexpr uint64_t kHidden = 32, kHeads = 4, kKv = 2, kDim = 8;
  ArtifactBuilder b(kWindowBatch);
  std::mt19937 random(5);
  int names = 0;
  auto matrix = [&](uint64_t rows, uint64_t cols, float spread) {
    std::uniform_real_distribution<float> distribution(-spread, spread);
    std::vector<float> values(rows * cols);
    for (float& value : values)
      value = distribution(random);
    return b.matrix("m" + std::to_string(names++), rows, cols, values);
  };
  const uint32_t x = b.slot(kHidden), q = b.slot(kHeads * kDim), k = b.slot(kKv * kDim), v = b.slot(kKv * kDim),
                 attended = b.slot(kHeads * kDim), logits = b.slot(kWindowVocab);
  auto matmul = [&](std::initializer_list<artifact::MatmulPartT> parts, bool head = false) {
    artifact::MatmulOpT op;
    for (const artifact::MatmulPartT& part : parts)
      op.parts.push_back(std::make_unique<artifact::MatmulPartT>(part));
    b.stage(std::move(op), head);
  };
  artifact::EmbedOpT embed;
  embed.weight = matrix(kWindowVocab, kHidden, 1);
  embed.out = x;
  b.stage(std::move(embed));
  auto rope = std::make_unique<artifact::RopeTableT>();
  rope->inverse_frequencies = {1, 0.3f, 0.1f, 0.03f};
  b.program.rope_tables.push_back(std::move(rope));
  for (uint32_t layer = 0; layer < 2; ++layer) {
    auto kv = std::make_unique<artifact::KvLayerT>();
    kv->kv_heads = kKv;
    kv->k_dim = kv->v_dim = kDim;
    kv->window = window;
    kv->ring = ring;
    b.program.kv_layers.push_back(std::move(kv));
    matmul({b.matmul(matrix(kHeads * kDim, kHidden, 0.4f), x, q), b.matmul(matrix(kKv * kDim, kHidden, 0.4f), x, k),
            b.matmul(matrix(kKv * kDim, kHidden, 0.4f), x, v)});
    artifact::AttentionPrepOpT prep;
    prep.q = q;
    prep.k = k;
    prep.v = v;
    prep.layer = layer;
    prep.heads = kHeads;
    prep.head_dim = kDim;
    prep.rope = 0;
    b.stage(std::move(prep));
    artifact::AttentionOpT attention;
    attention.q = q;
    attention.layer = layer;
    attention.heads = kHeads;
    attention.head_dim = kDim;
    attention.scale = 0.5f;
    attention.out = attended;
    if (layer == 1)
      attention.group_windows = {3, kWindow};
    b.stage(std::move(attention));
    matmul({b.matmul(matrix(kHidden, kHeads * kDim, 0.4f), attended, x, 0xffffffff, x)});
  }
  matmul({b.matmul(matrix(kWindowVocab, kHidden, 0.4f), x, logits)}, /*head=*/true);
  b.program.logits = logits;
  b.manifest.vocab = kWindowVocab;
  b.manifest.max_context = max_context;
  return b.write(path);
}

} // namespace cortiq::test

#include "test/unit/runtime/window_model.h"

#include "test/unit/runtime/artifact_builder.h"

namespace cortiq::test {

Status write_window_model(const std::string& path, bool ring, uint64_t max_context, uint32_t window) {
  constexpr uint64_t kHidden = 32, kHeads = 4, kKv = 2, kDim = 8;
  ArtifactBuilder b(kWindowBatch);
  RandomWeights weights(b, 5);
  const uint32_t x = b.slot(kHidden), q = b.slot(kHeads * kDim), k = b.slot(kKv * kDim), v = b.slot(kKv * kDim),
                 attended = b.slot(kHeads * kDim), logits = b.slot(kWindowVocab);
  artifact::EmbedOpT embed;
  embed.weight = weights.matrix(kWindowVocab, kHidden, 1);
  embed.out = x;
  b.stage(std::move(embed));
  auto rope = std::make_unique<artifact::RopeTableT>();
  rope->inverse_frequencies = {1, 0.3f, 0.1f, 0.03f};
  b.program.rope_tables.push_back(std::move(rope));
  for (uint32_t layer = 0; layer < 2; ++layer) {
    b.kv_layer(kKv, kDim, window, ring);
    b.products({b.matmul(weights.matrix(kHeads * kDim, kHidden, 0.4f), x, q),
                b.matmul(weights.matrix(kKv * kDim, kHidden, 0.4f), x, k),
                b.matmul(weights.matrix(kKv * kDim, kHidden, 0.4f), x, v)});
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
    b.products({b.matmul(weights.matrix(kHidden, kHeads * kDim, 0.4f), attended, x, 0xffffffff, x)});
  }
  b.products({b.matmul(weights.matrix(kWindowVocab, kHidden, 0.4f), x, logits)}, /*head=*/true);
  b.program.logits = logits;
  b.manifest.vocab = kWindowVocab;
  b.manifest.max_context = max_context;
  return b.write(path);
}

} // namespace cortiq::test

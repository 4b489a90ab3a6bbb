#include "test/unit/runtime/expert_model.h"

namespace cortiq::test {

using artifact::BufferKind;

Status write_expert_model(const std::string& path, Numbers numbers) {
  constexpr uint32_t kExperts = 6, kChoices = 2;
  constexpr uint64_t kHidden = 40, kWidth = 35; // neither fills whole row groups
  ArtifactBuilder b(/*max_batch=*/24);
  b.numbers = numbers;
  RandomWeights weights(b, 5);
  const uint32_t x = b.slot(kHidden), logits = b.slot(kExperts), ids = b.slot(kChoices, BufferKind::I32),
                 shares = b.slot(kChoices), plan = b.slot(2 * kExperts + 2 + 2 * kChoices, BufferKind::I32),
                 pairs = b.slot(kHidden, BufferKind::Q8Bf16Act, kChoices),
                 gate = b.slot(kWidth, BufferKind::F32, kChoices), up = b.slot(kWidth, BufferKind::F32, kChoices),
                 gated = b.slot(kWidth, BufferKind::Q8Bf16Act, kChoices),
                 down = b.slot(kHidden, BufferKind::F32, kChoices), out = b.slot(kHidden), words = b.slot(kExpertVocab);
  artifact::EmbedOpT embed;
  embed.weight = weights.matrix(kExpertVocab, kHidden, 1);
  embed.out = x;
  b.stage(std::move(embed));
  b.products({b.matmul(weights.matrix(kExperts, kHidden, 1), x, logits)});
  artifact::MoeRouteOpT route;
  route.logits = logits;
  route.ids = ids;
  route.weights = shares;
  route.normalize = true;
  b.stage(std::move(route));
  artifact::MoePlanOpT sort;
  sort.ids = ids;
  sort.plan = plan;
  sort.experts = kExperts;
  b.stage(std::move(sort));
  const uint32_t act = b.quantized(x);
  artifact::MoeGatherOpT gather;
  gather.plan = plan;
  gather.experts = kExperts;
  gather.act = act;
  gather.act_out = pairs;
  b.stage(std::move(gather));
  const auto role = [&](uint64_t rows, uint64_t cols, uint32_t input, uint32_t token, uint32_t result) {
    artifact::MoeMatmulOpT op;
    op.plan = plan;
    for (uint32_t e = 0; e < kExperts; ++e)
      op.parts.push_back(
          std::make_unique<artifact::ExpertPartT>(b.expert(weights.matrix(rows, cols, 0.3f), input, token, result)));
    return op;
  };
  b.begin_stage(false);
  b.call(role(kWidth, kHidden, pairs, act, gate));
  b.call(role(kWidth, kHidden, pairs, act, up));
  artifact::MoeGluOpT glu;
  glu.plan = plan;
  glu.gate = gate;
  glu.up = up;
  glu.act_out = gated;
  glu.widths.assign(kExperts, kWidth);
  b.stage(std::move(glu));
  b.stage(role(kHidden, kWidth, gated, 0xffffffff, down));
  artifact::MoeCombineOpT combine;
  combine.plan = plan;
  combine.experts = kExperts;
  combine.weights = shares;
  combine.pairs = down;
  combine.residual = x;
  combine.out = out;
  b.stage(std::move(combine));
  b.products({b.matmul(weights.matrix(kExpertVocab, kHidden, 0.5f), out, words)}, /*head=*/true);
  b.program.logits = words;
  b.manifest.vocab = kExpertVocab;
  b.manifest.max_context = 200;
  return b.write(path);
}

} // namespace cortiq::test

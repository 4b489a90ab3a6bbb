// Attention blocks of checkpoints: plain, and latent (MLA).

#include "tools/cortiq-convert/hf_tensors.h"

namespace cortiq::convert {
namespace {

std::string attention_name(uint64_t layer, std::string_view suffix) {
  return layer_name(layer, "self_attn." + std::string(suffix));
}

/// Queries, keys and values, which some families fuse.
Status add_projections(HfTensors& tensors, uint64_t layer, uint64_t query_rows, uint64_t kv_rows) {
  struct Projection {
    const char* stem;
    uint64_t rows;
  };
  const Projection projections[] = {{"q_proj", query_rows}, {"k_proj", kv_rows}, {"v_proj", kv_rows}};
  const std::string fused = attention_name(layer, "qkv_proj.weight");
  uint64_t first = 0;
  for (const Projection& p : projections) {
    const std::string name = attention_name(layer, std::string(p.stem) + ".weight");
    const Slice slice = tensors.has(fused) ? Slice{.first = first, .file_rows = query_rows + 2 * kv_rows} : Slice{};
    CORTIQ_RETURN_IF_ERROR(
        tensors.add_slice(tensors.has(fused) ? fused : name, name, {p.rows, tensors.sizes.hidden}, slice).status());
    first += p.rows;
  }
  // CMF uses the three biases together or not at all.
  if (tensors.has(attention_name(layer, "q_proj.bias")))
    for (const Projection& p : projections)
      CORTIQ_RETURN_IF_ERROR(tensors.keep(attention_name(layer, std::string(p.stem) + ".bias"), {p.rows}).status());
  return {};
}

} // namespace

Status add_hf_attention(HfTensors& tensors, uint64_t layer) {
  const HfSizes& s = tensors.sizes;
  const uint64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  CORTIQ_RETURN_IF_ERROR(add_projections(tensors, layer, tensors.type.gated_queries ? 2 * q : q, kv));
  if (tensors.type.head_norms)
    for (const char* stem : {"q_norm.weight", "k_norm.weight"})
      CORTIQ_RETURN_IF_ERROR(tensors.keep(attention_name(layer, stem), {s.head_dim}).status());
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const out, tensors.keep(attention_name(layer, "o_proj.weight"), {s.hidden, q}));
  scale_residual(*out, s.residual_scale);
  return {};
}

Status add_hf_latent(HfTensors& tensors, uint64_t layer) {
  const HfSizes& s = tensors.sizes;
  const LatentSizes& m = s.latent;
  const uint64_t query_rows = s.heads * (m.nope + m.rope);
  const auto add = [&](const char* stem, std::vector<uint64_t> shape, IndexOrder order) {
    const std::string name = attention_name(layer, stem);
    return tensors.add_slice(name, name, std::move(shape), {.order = std::move(order)}).status();
  };
  const IndexOrder heads = from_nope_first(m.nope, m.rope);
  if (m.query_rank == 0) {
    CORTIQ_RETURN_IF_ERROR(add("q_proj.weight", {query_rows, s.hidden}, heads));
  } else {
    CORTIQ_RETURN_IF_ERROR(add("q_a_proj.weight", {m.query_rank, s.hidden}, nullptr));
    CORTIQ_RETURN_IF_ERROR(add("q_a_layernorm.weight", {m.query_rank}, nullptr));
    CORTIQ_RETURN_IF_ERROR(add("q_b_proj.weight", {query_rows, m.query_rank}, heads));
  }
  CORTIQ_RETURN_IF_ERROR(
      add("kv_a_proj_with_mqa.weight", {m.rank + m.rope, s.hidden}, from_neighbours_after(m.rank, m.rope)));
  CORTIQ_RETURN_IF_ERROR(add("kv_a_layernorm.weight", {m.rank}, nullptr));
  CORTIQ_RETURN_IF_ERROR(add("kv_b_proj.weight", {s.heads * (m.nope + m.value), m.rank}, nullptr));
  return add("o_proj.weight", {s.hidden, s.heads * m.value}, nullptr);
}

} // namespace cortiq::convert

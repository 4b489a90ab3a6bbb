// Attention blocks of GGUF: plain, and latent (MLA).

#include "formats/quote.h"
#include "tools/cortiq-convert/gguf_tensors.h"

namespace cortiq::convert {
namespace {

std::string attention_name(uint64_t layer, std::string_view suffix) {
  return layer_name(layer, "self_attn." + std::string(suffix));
}

/// CMF uses the three biases together or not at all (3.1).
Status check_biases(const GgufTensors& tensors, uint64_t layer) {
  int found = 0;
  for (const char* stem : {"q_proj.bias", "k_proj.bias", "v_proj.bias"})
    found += tensors.made(attention_name(layer, stem));
  if (found == 0 || found == 3)
    return {};
  return unsupported("layer " + std::to_string(layer) +
                     " has biases on some of queries, keys and values but not on all, which CMF cannot hold");
}

Status add_projections(GgufTensors& tensors, uint64_t layer, uint64_t query_rows) {
  struct Projection {
    const char* file;
    const char* canonical;
    uint64_t rows;
    bool rotated;
  };
  const GgufSizes& sizes = tensors.sizes;
  const Projection projections[] = {
      {"attn_q", "q_proj", query_rows, true},
      {"attn_k", "k_proj", sizes.kv_heads[layer] * sizes.key_length, true},
      {"attn_v", "v_proj", sizes.kv_heads[layer] * sizes.value_length, false},
  };
  const bool fused = tensors.has(gguf_block(layer, "attn_qkv.weight"));
  uint64_t all = 0, first = 0;
  for (const Projection& p : projections)
    all += p.rows;
  for (const Projection& p : projections) {
    const std::string stem = gguf_block(layer, fused ? "attn_qkv" : p.file);
    const std::string canonical = attention_name(layer, p.canonical);
    Slice slice{.first = fused ? first : 0, .file_rows = fused ? all : p.rows};
    if (p.rotated && tensors.arch.pairing == GgufPairing::kNeighbours)
      slice.order = from_neighbours(sizes.key_length);
    CORTIQ_RETURN_IF_ERROR(
        tensors.add_slice(stem + ".weight", canonical + ".weight", {p.rows, sizes.hidden}, slice).status());
    if (tensors.has(stem + ".bias"))
      CORTIQ_RETURN_IF_ERROR(tensors.add_slice(stem + ".bias", canonical + ".bias", {p.rows}, slice).status());
    first += p.rows;
  }
  return check_biases(tensors, layer);
}

/// kv_b_proj of latent attention. The file has its key half transposed head by head; the value half follows as it is.
class LatentRows : public formats::RowSource {
public:
  LatentRows(const formats::Tensor* keys, const formats::Tensor* values, const LatentSizes& latent, uint64_t heads)
      : keys_(keys), values_(values), latent_(latent), heads_(heads) {}

  uint64_t rows() const override { return heads_ * (latent_.nope + latent_.value); }
  uint64_t cols() const override { return latent_.rank; }

  void read(uint64_t row, float* out) const override {
    const uint64_t size = latent_.nope + latent_.value, head = row / size, within = row % size;
    if (within >= latent_.nope) {
      values_->codec->decode_row(values_->data.data(), values_->rows(), values_->cols(),
                                 head * latent_.value + within - latent_.nope, out);
      return;
    }
    std::vector<float> column(latent_.nope);
    for (uint64_t i = 0; i < latent_.rank; ++i) {
      keys_->codec->decode_row(keys_->data.data(), keys_->rows(), keys_->cols(), head * latent_.rank + i,
                               column.data());
      out[i] = column[within];
    }
  }

private:
  const formats::Tensor* keys_;
  const formats::Tensor* values_;
  LatentSizes latent_;
  uint64_t heads_;
};

Status add_latent_values(GgufTensors& tensors, uint64_t layer) {
  const LatentSizes& m = tensors.sizes.latent;
  const uint64_t heads = tensors.sizes.heads[layer];
  CORTIQ_ASSIGN_OR_RETURN(const formats::Tensor* keys,
                          tensors.take(gguf_block(layer, "attn_k_b.weight"), {heads, m.rank, m.nope}));
  CORTIQ_ASSIGN_OR_RETURN(const formats::Tensor* values,
                          tensors.take(gguf_block(layer, "attn_v_b.weight"), {heads, m.value, m.rank}));
  SourceTensor made;
  made.name = attention_name(layer, "kv_b_proj.weight");
  made.shape = {heads * (m.nope + m.value), m.rank};
  made.tensor = keys;
  made.derived = std::make_shared<LatentRows>(keys, values, m, heads);
  tensors.add_made(std::move(made));
  return {};
}

} // namespace

Status add_gguf_attention(GgufTensors& tensors, uint64_t layer) {
  const GgufSizes& sizes = tensors.sizes;
  const uint64_t query_rows = sizes.heads[layer] * sizes.key_length;
  const bool gated = tensors.arch.mixer == GgufMixer::kGatedDelta; // query rows, then gate rows, in each head
  CORTIQ_RETURN_IF_ERROR(add_projections(tensors, layer, gated ? 2 * query_rows : query_rows));
  if (tensors.arch.head_norms)
    for (const char* stem : {"q_norm.weight", "k_norm.weight"})
      CORTIQ_RETURN_IF_ERROR(
          tensors.add(gguf_block(layer, "attn_" + std::string(stem)), attention_name(layer, stem), {sizes.key_length})
              .status());
  CORTIQ_ASSIGN_OR_RETURN(SourceTensor* const out,
                          tensors.add(gguf_block(layer, "attn_output.weight"), attention_name(layer, "o_proj.weight"),
                                      {sizes.hidden, sizes.heads[layer] * sizes.value_length}));
  scale_residual(*out, sizes.residual_scale);
  return {};
}

Status add_gguf_latent(GgufTensors& tensors, uint64_t layer) {
  const GgufSizes& sizes = tensors.sizes;
  const LatentSizes& m = sizes.latent;
  const uint64_t heads = sizes.heads[layer], query_rows = heads * (m.nope + m.rope);
  const auto add = [&](const char* file, const char* canonical, std::vector<uint64_t> shape, IndexOrder order) {
    return tensors.add_slice(gguf_block(layer, file), attention_name(layer, canonical), std::move(shape),
                             {.order = std::move(order)});
  };
  const IndexOrder heads_order = from_nope_first(m.nope, m.rope);
  if (m.query_rank == 0) {
    CORTIQ_RETURN_IF_ERROR(add("attn_q.weight", "q_proj.weight", {query_rows, sizes.hidden}, heads_order).status());
  } else {
    CORTIQ_RETURN_IF_ERROR(add("attn_q_a.weight", "q_a_proj.weight", {m.query_rank, sizes.hidden}, nullptr).status());
    CORTIQ_RETURN_IF_ERROR(add("attn_q_a_norm.weight", "q_a_layernorm.weight", {m.query_rank}, nullptr).status());
    CORTIQ_RETURN_IF_ERROR(add("attn_q_b.weight", "q_b_proj.weight", {query_rows, m.query_rank}, heads_order).status());
  }
  CORTIQ_RETURN_IF_ERROR(add("attn_kv_a_mqa.weight", "kv_a_proj_with_mqa.weight", {m.rank + m.rope, sizes.hidden},
                             from_neighbours_after(m.rank, m.rope))
                             .status());
  CORTIQ_RETURN_IF_ERROR(add("attn_kv_a_norm.weight", "kv_a_layernorm.weight", {m.rank}, nullptr).status());
  CORTIQ_RETURN_IF_ERROR(add_latent_values(tensors, layer));
  return add("attn_output.weight", "o_proj.weight", {sizes.hidden, heads * m.value}, nullptr).status();
}

} // namespace cortiq::convert

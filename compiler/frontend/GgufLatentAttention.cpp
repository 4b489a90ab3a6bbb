// Multi-head latent attention in GGUF files (GGUF models 2.5). A file has the second half of its keys and values as one
// matrix a head, transposed for the keys (attn_k_b, attn_v_b), or as one matrix of both (attn_kv_b, older files).

#include <cmath>

#include "compiler/frontend/GgufReader.h"
#include "formats/quote.h"

namespace cortiq::compiler {

using formats::Tensor;

Status GgufReader::readLatentSizes() {
  LatentAttention& latent = model_.latent;
  CORTIQ_ASSIGN_OR_RETURN(latent.rank, size("attention.kv_lora_rank"));
  CORTIQ_ASSIGN_OR_RETURN(latent.rope, size("rope.dimension_count"));
  // Files of the absorbed form have its sizes in the plain keys.
  CORTIQ_ASSIGN_OR_RETURN(const int64_t head, size("attention.key_length_mla", keyLength_));
  CORTIQ_ASSIGN_OR_RETURN(latent.value, size("attention.value_length_mla", valueLength_));
  latent.nope = head - latent.rope;
  if (latent.nope <= 0)
    return invalid("key " + key("rope.dimension_count") + " is " + std::to_string(latent.rope) +
                   ", but the head size is " + std::to_string(head) + ", which leaves nothing that does not turn");
  keyLength_ = head;
  valueLength_ = latent.value;
  for (LayerDescription& layer : model_.layers) {
    layer.mixer = Mixer::kLatentAttention;
    layer.headDim = head;
    layer.vDim = latent.value;
  }
  return {};
}

// A stack of one matrix a head, as so many weights.
Status GgufReader::readLatentHeads(int64_t index, std::string_view file, std::string_view canonical, int64_t rows,
                                   int64_t cols) {
  const int64_t heads = model_.layers[index].heads;
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* stack, require(blockName(index, file)));
  const std::vector<uint64_t> expected = {static_cast<uint64_t>(heads), static_cast<uint64_t>(rows),
                                          static_cast<uint64_t>(cols)};
  if (stack->shape != expected)
    return invalid("tensor " + formats::quote(stack->name) + " has shape " + formats::shape_text(stack->shape) +
                   ", but the model's sizes ask for " + formats::shape_text(expected));
  CORTIQ_RETURN_IF_ERROR(formats::weight_codec(*stack).status());
  const std::string stem = layerName(index, "self_attn." + std::string(canonical) + ".");
  for (int64_t h = 0; h < heads; ++h)
    model_.weights[stem + std::to_string(h) + ".weight"] = {stack, {rows, cols}, h * rows};
  return {};
}

Status GgufReader::readLatentAttention(int64_t index, const DecoderTraits&) {
  const LatentAttention& latent = model_.latent;
  const int64_t heads = model_.layers[index].heads, hidden = model_.hidden, head = latent.rope + latent.nope;
  auto name = [&](std::string_view suffix) { return layerName(index, "self_attn." + std::string(suffix)); };

  std::string query = "attn_q.weight", canonical = "q_proj";
  int64_t width = hidden;
  if (file_.has(key("attention.q_lora_rank")) && file_.find(blockName(index, "attn_q_a.weight"))) {
    CORTIQ_ASSIGN_OR_RETURN(width, size("attention.q_lora_rank"));
    CORTIQ_RETURN_IF_ERROR(matrix(blockName(index, "attn_q_a.weight"), name("q_a_proj.weight"), width, hidden));
    CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "attn_q_a_norm.weight"), name("q_a_layernorm.weight"), width));
    query = "attn_q_b.weight";
    canonical = "q_b_proj";
  }
  // Rows of a head: what does not turn, then neighbouring pairs that do.
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* q, require(blockName(index, query)));
  CORTIQ_RETURN_IF_ERROR(
      addWeight(model_, name(canonical + ".nope.weight"),
                {q, {heads * latent.nope, width}, /*first=*/0, /*deinterleave=*/0, latent.nope, head}, heads * head));
  CORTIQ_RETURN_IF_ERROR(addWeight(model_, name(canonical + ".rope.weight"),
                                   {q, {heads * latent.rope, width}, latent.nope, latent.rope, latent.rope, head},
                                   heads * head));

  CORTIQ_ASSIGN_OR_RETURN(const Tensor* kv, require(blockName(index, "attn_kv_a_mqa.weight")));
  const int64_t rows = latent.rank + latent.rope;
  CORTIQ_RETURN_IF_ERROR(
      addWeight(model_, name("kv_a_proj_with_mqa.latent.weight"), {kv, {latent.rank, hidden}}, rows));
  CORTIQ_RETURN_IF_ERROR(addWeight(model_, name("kv_a_proj_with_mqa.rope.weight"),
                                   {kv, {latent.rope, hidden}, latent.rank, latent.rope}, rows));
  CORTIQ_RETURN_IF_ERROR(vector(blockName(index, "attn_kv_a_norm.weight"), name("kv_a_layernorm.weight"), latent.rank));

  if (const Tensor* both = file_.find(blockName(index, "attn_kv_b.weight"))) {
    const int64_t period = latent.nope + latent.value;
    CORTIQ_RETURN_IF_ERROR(addWeight(model_, name("kv_b_proj.k.weight"),
                                     {both, {heads * latent.nope, latent.rank}, 0, 0, latent.nope, period},
                                     heads * period));
    CORTIQ_RETURN_IF_ERROR(addWeight(model_, name("kv_b_proj.v.weight"),
                                     {both, {heads * latent.value, latent.rank}, latent.nope, 0, latent.value, period},
                                     heads * period));
  } else {
    CORTIQ_RETURN_IF_ERROR(readLatentHeads(index, "attn_k_b.weight", "k_b_proj", latent.rank, latent.nope));
    CORTIQ_RETURN_IF_ERROR(readLatentHeads(index, "attn_v_b.weight", "v_b_proj", latent.value, latent.rank));
  }
  return matrix(blockName(index, "attn_output.weight"), name("o_proj.weight"), hidden, heads * latent.value);
}

} // namespace cortiq::compiler

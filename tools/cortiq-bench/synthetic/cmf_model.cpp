#include <nlohmann/json.hpp>

#include "formats/cmf/cmf_stream_writer.h"
#include "tools/cortiq-bench/synthetic/model_file.h"

namespace cortiq::bench {
namespace {

using formats::Json;

Json header_of(const SyntheticSpec& spec) {
  const SyntheticShape& s = spec.shape;
  Json arch = {{"arch_name", s.moe() ? "qwen3_moe" : "llama"},
               {"hidden_size", s.hidden},
               {"intermediate_size", s.ffn},
               {"num_layers", s.layers},
               {"num_attention_heads", s.heads},
               {"num_kv_heads", s.kv_heads},
               {"head_dim", s.head_dim},
               {"vocab_size", s.vocab},
               {"layer_types", std::vector<std::string>(s.layers, "FullAttention")},
               {"rms_norm_eps", 1e-5},
               {"norm_style", "qwen"},
               {"rope_theta", 500000.0},
               {"tie_word_embeddings", s.tied},
               {"partial_rotary_factor", 1.0},
               {"attention_sink", false},
               {"max_position_embeddings", s.context}};
  if (s.moe())
    arch["moe"] = {{"num_experts", s.experts},
                   {"top_k", s.used},
                   {"moe_intermediate_size", s.expert_ffn},
                   {"norm_topk_prob", true}};
  return {{"arch", std::move(arch)}, {"quant_type", "Q4_BLOCK"}, {"provenance", {{"source_model", spec.title()}}}};
}

} // namespace

Status write_cmf(const SyntheticSpec& spec, Payloads payloads, const std::string& path) {
  const std::vector<SyntheticTensor> tensors = synthetic_tensors(spec);
  std::vector<formats::CmfStreamTensor> entries;
  for (const SyntheticTensor& tensor : tensors)
    entries.push_back({tensor.name, tensor.codec->cmf_code, tensor.shape});
  CORTIQ_ASSIGN_OR_RETURN(formats::CmfStreamWriter writer,
                          formats::CmfStreamWriter::create(path, header_of(spec), std::move(entries), {}));
  for (size_t i = 0; i < tensors.size(); ++i) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, tensors[i].bytes());
    CORTIQ_RETURN_IF_ERROR(writer.begin_tensor(bytes));
    if (payloads == Payloads::kRandom || tensors[i].codec->variable_size) {
      CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, random_payload(tensors[i], spec.seed, i));
      CORTIQ_RETURN_IF_ERROR(writer.write_at(0, payload));
    } else {
      CORTIQ_RETURN_IF_ERROR(writer.write_at(bytes, {})); // a hole
    }
  }
  CORTIQ_RETURN_IF_ERROR(writer.finish(payloads == Payloads::kRandom)); // hashing holes would take longer than all else
  return writer.commit();
}

} // namespace cortiq::bench

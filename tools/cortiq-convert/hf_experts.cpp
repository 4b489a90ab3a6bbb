// Experts, by config.json: every family has words of its own.

#include <algorithm>

#include "formats/quote.h"
#include "tools/cortiq-convert/hf_config.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;

namespace {

class ExpertReader {
public:
  ExpertReader(const HfFields& fields, HfHeader& header)
      : fields_(fields), header_(header), s_(header.sizes), e_(header.sizes.experts) {}

  Status read() {
    s_.sparse.assign(s_.layers, header_.type->experts != HfExperts::kNone);
    RouterRules rules;
    switch (header_.type->experts) {
    case HfExperts::kNone:
      return {};
    case HfExperts::kMixtral:
      CORTIQ_RETURN_IF_ERROR(read_mixtral(rules));
      break;
    case HfExperts::kQwen:
      CORTIQ_RETURN_IF_ERROR(read_qwen(rules));
      break;
    case HfExperts::kDeepSeek:
      CORTIQ_RETURN_IF_ERROR(read_deepseek(rules));
      break;
    case HfExperts::kLfm:
      CORTIQ_RETURN_IF_ERROR(read_lfm(rules));
      break;
    }
    if (e_.used > e_.count)
      return invalid("num_experts_per_tok is more than there are experts");
    header_.arch["moe"] = expert_fields(e_, rules);
    return {};
  }

private:
  void dense_until(uint64_t layers) { std::fill_n(s_.sparse.begin(), std::min(layers, s_.layers), false); }

  Status read_mixtral(RouterRules& rules) {
    CORTIQ_ASSIGN_OR_RETURN(e_.count, fields_.size("num_local_experts"));
    CORTIQ_ASSIGN_OR_RETURN(e_.used, fields_.size("num_experts_per_tok"));
    e_.width = s_.feed_forward;
    rules.normalized = true;
    return {};
  }

  Status read_qwen(RouterRules& rules) {
    CORTIQ_ASSIGN_OR_RETURN(e_.count, fields_.size("num_experts"));
    CORTIQ_ASSIGN_OR_RETURN(e_.used, fields_.size("num_experts_per_tok"));
    CORTIQ_ASSIGN_OR_RETURN(e_.width, fields_.size("moe_intermediate_size"));
    CORTIQ_ASSIGN_OR_RETURN(e_.shared_width, fields_.count("shared_expert_intermediate_size", 0));
    const bool newer = header_.type->mixer == HfMixer::kGatedDelta;
    CORTIQ_ASSIGN_OR_RETURN(rules.normalized, fields_.flag("norm_topk_prob", newer));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t step, fields_.size("decoder_sparse_step", 1));
    for (uint64_t i = 0; i < s_.layers; ++i)
      s_.sparse[i] = (i + 1) % step == 0;
    if (const Json* dense = fields_.find("mlp_only_layers")) {
      if (!dense->is_array())
        return invalid("mlp_only_layers is no list");
      for (const Json& layer : *dense)
        if (layer.is_number_unsigned() && layer.get<uint64_t>() < s_.layers)
          s_.sparse[layer.get<uint64_t>()] = false;
    }
    return {};
  }

  Status read_deepseek(RouterRules& rules) {
    CORTIQ_ASSIGN_OR_RETURN(e_.count, fields_.count("n_routed_experts", 0));
    if (e_.count == 0)
      return invalid("n_routed_experts is missing");
    CORTIQ_ASSIGN_OR_RETURN(e_.used, fields_.size("num_experts_per_tok"));
    CORTIQ_ASSIGN_OR_RETURN(e_.width, fields_.size("moe_intermediate_size"));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t shared, fields_.count("n_shared_experts", 0));
    e_.shared_width = shared * e_.width;
    if (e_.shared_width > kMostSize)
      return invalid("n_shared_experts is no size that a model can have");
    const bool third = header_.type->name == "deepseek_v3";
    CORTIQ_ASSIGN_OR_RETURN(rules.normalized, fields_.flag("norm_topk_prob", third));
    CORTIQ_ASSIGN_OR_RETURN(rules.scale, fields_.number("routed_scaling_factor", third ? 2.5 : 1));
    CORTIQ_ASSIGN_OR_RETURN(const std::string score, fields_.text("scoring_func", third ? "sigmoid" : "softmax"));
    if (score != "sigmoid" && score != "softmax")
      return unsupported("scoring_func is " + quote(score) + "; softmax and sigmoid can be converted");
    rules.sigmoid = score == "sigmoid";
    CORTIQ_RETURN_IF_ERROR(refuse_groups(third));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t dense, fields_.count("first_k_dense_replace", 0));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t step, fields_.size("moe_layer_freq", 1));
    for (uint64_t i = 0; i < s_.layers; ++i)
      s_.sparse[i] = i % step == 0;
    dense_until(dense);
    return {};
  }

  /// Choosing groups first changes what is chosen, unless all groups are.
  Status refuse_groups(bool third) const {
    CORTIQ_ASSIGN_OR_RETURN(const std::string method, fields_.text("topk_method", third ? "noaux_tc" : "greedy"));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t groups, fields_.count("n_group", third ? 8 : 0));
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t used, fields_.count("topk_group", third ? 4 : 0));
    if (method == "greedy" || groups <= 1 || used >= groups)
      return {};
    return unsupported("n_group is " + std::to_string(groups) +
                       ", and CMF has no field for a choice among groups of experts");
  }

  Status read_lfm(RouterRules& rules) {
    CORTIQ_ASSIGN_OR_RETURN(e_.count, fields_.size("num_experts"));
    CORTIQ_ASSIGN_OR_RETURN(e_.used, fields_.size("num_experts_per_tok"));
    CORTIQ_ASSIGN_OR_RETURN(e_.width, fields_.size("moe_intermediate_size"));
    CORTIQ_ASSIGN_OR_RETURN(rules.normalized, fields_.flag("norm_topk_prob", true));
    CORTIQ_ASSIGN_OR_RETURN(rules.scale, fields_.number("routed_scaling_factor", 1));
    rules.sigmoid = true;
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t dense, fields_.count("num_dense_layers", 0));
    dense_until(dense);
    return {};
  }

  const HfFields& fields_;
  HfHeader& header_;
  HfSizes& s_;
  ExpertSizes& e_;
};

} // namespace

Status read_hf_experts(const HfFields& fields, HfHeader& header) {
  return ExpertReader(fields, header).read();
}

} // namespace cortiq::convert

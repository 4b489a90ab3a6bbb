// Keys about experts.

#include <algorithm>

#include "tools/cortiq-convert/gguf_header.h"

namespace cortiq::convert {
namespace {

/// Router functions by number, as far as CMF has them.
StatusOr<bool> is_sigmoid(const GgufKeys& keys, bool otherwise) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t function, keys.count_or("expert_gating_func", 0));
  if (function > 2)
    return keys.refuse("expert_gating_func", std::to_string(function), "but CMF has softmax (1) and sigmoid (2) only");
  return function == 0 ? otherwise : function == 2;
}

/// Choosing groups first changes what is chosen, unless all groups are.
Status refuse_groups(const GgufKeys& keys) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t groups, keys.count_or("expert_group_count", 0));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t used, keys.count_or("expert_group_used_count", 0));
  if (groups > 1 && used < groups)
    return keys.refuse("expert_group_count", std::to_string(groups),
                       "and CMF has no field for a choice among groups of experts");
  return {};
}

/// The width of one expert where no key gives it.
StatusOr<uint64_t> expert_width(const GgufKeys& keys, const GgufArch& arch, const GgufSizes& sizes, uint64_t used) {
  const uint64_t dense = *std::max_element(sizes.feed_forward.begin(), sizes.feed_forward.end());
  const bool whole = arch.name == "llama" || arch.name == "granitemoe"; // each expert is a feed-forward block
  const uint64_t otherwise = arch.experts == GgufExperts::kKeyed ? 0 : whole ? dense : dense / used;
  return keys.size_or("expert_feed_forward_length", otherwise);
}

} // namespace

Status read_gguf_experts(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header) {
  GgufSizes& sizes = header.sizes;
  ExpertSizes& e = sizes.experts;
  CORTIQ_ASSIGN_OR_RETURN(e.count, keys.count_or("expert_count", 0));
  if (e.count == 0 && !arch.needs_experts) {
    for (uint64_t layer = 0; layer < sizes.layers; ++layer)
      CORTIQ_RETURN_IF_ERROR(keys.checked("feed_forward_length", sizes.feed_forward[layer]).status());
    return {};
  }
  if (arch.experts == GgufExperts::kNone)
    return keys.refuse("expert_count", std::to_string(e.count), "but this architecture has no experts");
  CORTIQ_ASSIGN_OR_RETURN(e.count, keys.size("expert_count"));
  CORTIQ_ASSIGN_OR_RETURN(e.used, keys.size("expert_used_count"));
  if (e.used > e.count)
    return invalid("key " + keys.name("expert_used_count") + " is " + std::to_string(e.used) + " of " +
                   std::to_string(e.count) + " experts (" + keys.name("expert_count") + ")");
  CORTIQ_RETURN_IF_ERROR(refuse_groups(keys));
  CORTIQ_ASSIGN_OR_RETURN(e.width, expert_width(keys, arch, sizes, e.used));
  CORTIQ_ASSIGN_OR_RETURN(sizes.dense_layers, keys.count_or("leading_dense_block_count", 0));
  for (uint64_t layer = 0; layer < std::min(sizes.dense_layers, sizes.layers); ++layer)
    CORTIQ_RETURN_IF_ERROR(keys.checked("feed_forward_length", sizes.feed_forward[layer]).status());
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t shared, keys.count_or("expert_shared_count", 0));
  CORTIQ_ASSIGN_OR_RETURN(e.shared_width, keys.count_or("expert_shared_feed_forward_length", shared * e.width));
  CORTIQ_ASSIGN_OR_RETURN(const bool sigmoid, is_sigmoid(keys, arch.sigmoid));
  CORTIQ_ASSIGN_OR_RETURN(const double scale, keys.number("expert_weights_scale", 1));
  CORTIQ_ASSIGN_OR_RETURN(const bool keyed, keys.file().get_bool_or(keys.name("expert_weights_norm"), false));

  formats::Json& json = header.arch;
  if (!arch.experts_name.empty())
    json["arch_name"] = arch.experts_name;
  if (json["intermediate_size"] == 0)
    json["intermediate_size"] = e.width;
  const bool normalized = arch.experts == GgufExperts::kKeyed ? keyed : arch.experts == GgufExperts::kNormalized;
  json["moe"] = expert_fields(e, {.normalized = normalized, .sigmoid = sigmoid, .scale = scale == 0 ? 1 : scale});
  return {};
}

} // namespace cortiq::convert

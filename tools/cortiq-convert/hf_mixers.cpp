// What mixes tokens, by config.json: windows, latent attention, convolutions, delta networks.

#include <algorithm>

#include "formats/quote.h"
#include "tools/cortiq-convert/hf_config.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;

namespace {

class MixerReader {
public:
  MixerReader(const HfFields& fields, HfHeader& header)
      : fields_(fields), type_(*header.type), arch_(header.arch), s_(header.sizes) {}

  Status read() {
    s_.kinds.assign(s_.layers, LayerKind::kAttention);
    CORTIQ_RETURN_IF_ERROR(read_windows());
    if (type_.mixer == HfMixer::kLatent)
      CORTIQ_RETURN_IF_ERROR(read_latent());
    if (type_.mixer == HfMixer::kShortConv)
      CORTIQ_RETURN_IF_ERROR(read_short_conv());
    if (type_.mixer == HfMixer::kGatedDelta)
      CORTIQ_RETURN_IF_ERROR(read_delta());
    arch_["layer_types"] = layer_type_names(s_.kinds);
    return {};
  }

private:
  /// layer_types, where `special` stands for layers of kind `kind`; false where there is none.
  StatusOr<bool> read_types(const char* special, LayerKind kind) {
    const Json* list = fields_.find("layer_types");
    if (!list)
      return false;
    if (!list->is_array() || list->size() != s_.layers)
      return invalid("layer_types is not a list of num_hidden_layers entries");
    for (size_t i = 0; i < s_.layers; ++i) {
      if ((*list)[i] == special)
        s_.kinds[i] = kind;
      else if ((*list)[i] != "full_attention")
        return unsupported("layer_types has an entry that is neither full_attention nor " + std::string(special));
    }
    return true;
  }

  Status read_windows() {
    if (type_.window == HfWindow::kNever || !fields_.has("sliding_window"))
      return {};
    CORTIQ_ASSIGN_OR_RETURN(const bool used, fields_.flag("use_sliding_window", false));
    if (type_.window == HfWindow::kSwitched && !used)
      return {};
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t width, fields_.size("sliding_window"));
    // One as wide as the context never hides anything; but window layers may be rotated otherwise.
    if (width >= s_.context && type_.window != HfWindow::kAlternate)
      return {};
    arch_["sliding_window"] = width;
    CORTIQ_ASSIGN_OR_RETURN(const bool listed, read_types("sliding_attention", LayerKind::kWindow));
    if (listed)
      return {};
    if (type_.window == HfWindow::kAlternate) {
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t older, fields_.size("_sliding_window_pattern", type_.window_pattern));
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t period, fields_.size("sliding_window_pattern", older));
      all_but_every(period, LayerKind::kWindow);
      return {};
    }
    uint64_t first = 0;
    if (type_.window == HfWindow::kSwitched) {
      CORTIQ_ASSIGN_OR_RETURN(first, fields_.size("max_window_layers", s_.layers));
    }
    for (size_t i = first; i < s_.layers; ++i)
      s_.kinds[i] = LayerKind::kWindow;
    return {};
  }

  void all_but_every(uint64_t period, LayerKind kind) {
    for (size_t i = 0; i < s_.layers; ++i)
      if ((i + 1) % period != 0)
        s_.kinds[i] = kind;
  }

  Status read_latent() {
    LatentSizes& m = s_.latent;
    CORTIQ_ASSIGN_OR_RETURN(m.query_rank, fields_.count("q_lora_rank", 0));
    CORTIQ_ASSIGN_OR_RETURN(m.rank, fields_.size("kv_lora_rank"));
    CORTIQ_ASSIGN_OR_RETURN(m.rope, fields_.size("qk_rope_head_dim"));
    CORTIQ_ASSIGN_OR_RETURN(m.nope, fields_.size("qk_nope_head_dim"));
    CORTIQ_ASSIGN_OR_RETURN(m.value, fields_.size("v_head_dim"));
    if (m.rope % 2 != 0)
      return invalid("qk_rope_head_dim is odd");
    s_.head_dim = m.rope; // what is rotated
    arch_["head_dim"] = m.rope;
    arch_["mla"] = latent_fields(m);
    return {};
  }

  Status read_short_conv() {
    CORTIQ_ASSIGN_OR_RETURN(s_.conv_taps, fields_.size("conv_L_cache"));
    CORTIQ_ASSIGN_OR_RETURN(const bool bias, fields_.flag("conv_bias", false));
    if (bias)
      return unsupported("conv_bias is true, and CMF has no place for biases of convolutions");
    arch_["linear_conv_kernel_dim"] = s_.conv_taps;
    CORTIQ_ASSIGN_OR_RETURN(const bool listed, read_types("conv", LayerKind::kShortConv));
    if (listed)
      return {};
    const Json* full = fields_.find("full_attn_idxs");
    if (!full || !full->is_array())
      return invalid("layer_types is missing");
    std::fill(s_.kinds.begin(), s_.kinds.end(), LayerKind::kShortConv);
    for (const Json& index : *full) {
      if (!index.is_number_unsigned() || index.get<uint64_t>() >= s_.layers)
        return invalid("full_attn_idxs has an entry that is no layer");
      s_.kinds[index.get<uint64_t>()] = LayerKind::kAttention;
    }
    return {};
  }

  Status read_delta() {
    DeltaSizes& d = s_.delta;
    CORTIQ_ASSIGN_OR_RETURN(d.taps, fields_.size("linear_conv_kernel_dim", 4));
    CORTIQ_ASSIGN_OR_RETURN(d.key_heads, fields_.size("linear_num_key_heads"));
    CORTIQ_ASSIGN_OR_RETURN(d.value_heads, fields_.size("linear_num_value_heads"));
    CORTIQ_ASSIGN_OR_RETURN(d.key_size, fields_.size("linear_key_head_dim"));
    CORTIQ_ASSIGN_OR_RETURN(d.value_size, fields_.size("linear_value_head_dim"));
    if (d.value_heads % d.key_heads != 0 || d.keys() > kMostSize || d.values() > kMostSize)
      return invalid("linear_num_value_heads is no multiple of linear_num_key_heads, or both are too many");
    add_delta_fields(d, arch_);
    CORTIQ_ASSIGN_OR_RETURN(const bool listed, read_types("linear_attention", LayerKind::kGatedDelta));
    if (listed)
      return {};
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t interval, fields_.size("full_attention_interval", 4));
    all_but_every(interval, LayerKind::kGatedDelta);
    return {};
  }

  const HfFields& fields_;
  const HfArch& type_;
  Json& arch_;
  HfSizes& s_;
};

} // namespace

Status read_hf_mixers(const HfFields& fields, HfHeader& header) {
  return MixerReader(fields, header).read();
}

} // namespace cortiq::convert

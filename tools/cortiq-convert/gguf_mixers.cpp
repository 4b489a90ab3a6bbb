// Keys about what mixes tokens: windows, latent attention, convolutions, delta networks.

#include <algorithm>

#include "tools/cortiq-convert/gguf_header.h"

namespace cortiq::convert {

namespace {

constexpr uint64_t kGemma2Window = 4096;

Status read_windows(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header) {
  if (arch.windows == GgufWindows::kNever)
    return {};
  const uint64_t otherwise = arch.windows == GgufWindows::kAlways ? kGemma2Window : 0;
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t width, keys.count_or("attention.sliding_window", otherwise));
  if (width == 0)
    return {};
  GgufSizes& s = header.sizes;
  const std::string pattern = keys.name("attention.sliding_window_pattern");
  const formats::GgufEntry* entry = keys.file().entry(pattern);
  if (entry && std::holds_alternative<formats::GgufArray>(entry->value)) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<bool> windows, keys.file().get_per_layer_bool(pattern, s.layers));
    for (uint64_t i = 0; i < s.layers; ++i)
      if (windows[i])
        s.kinds[i] = LayerKind::kWindow;
  } else {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t period,
                            keys.size_or("attention.sliding_window_pattern", arch.window_pattern));
    for (uint64_t i = 0; i < s.layers; ++i)
      if (i % period < period - 1)
        s.kinds[i] = LayerKind::kWindow;
  }
  header.arch["sliding_window"] = width;
  return {};
}

Status read_latent(const GgufKeys& keys, GgufHeader& header) {
  GgufSizes& s = header.sizes;
  LatentSizes& m = s.latent;
  if (!keys.has("attention.key_length_mla"))
    return unsupported("key " + keys.name("attention.key_length_mla") +
                       " is missing; files with whole key and value heads cannot be converted, make the file again");
  CORTIQ_ASSIGN_OR_RETURN(m.query_rank, keys.count_or("attention.q_lora_rank", 0));
  CORTIQ_ASSIGN_OR_RETURN(m.rank, keys.size("attention.kv_lora_rank"));
  CORTIQ_ASSIGN_OR_RETURN(m.rope, keys.size("rope.dimension_count"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t whole, keys.size("attention.key_length_mla"));
  CORTIQ_ASSIGN_OR_RETURN(m.value, keys.size("attention.value_length_mla"));
  if (m.rope >= whole || m.rope % 2 != 0)
    return invalid("key " + keys.name("rope.dimension_count") + " is " + std::to_string(m.rope) + " of " +
                   std::to_string(whole) + " (" + keys.name("attention.key_length_mla") + ")");
  m.nope = whole - m.rope;
  header.arch["mla"] = latent_fields(m);
  if (header.arch.contains("moe") && header.arch["moe"].contains("router_sigmoid"))
    header.arch["arch_name"] = "deepseek_v3";
  header.arch["head_dim"] = m.rope; // what is rotated, as the checkpoints' configuration has it
  return {};
}

Status read_short_conv(const GgufKeys& keys, GgufHeader& header) {
  GgufSizes& s = header.sizes;
  CORTIQ_ASSIGN_OR_RETURN(s.conv_taps, keys.size("shortconv.l_cache"));
  for (uint64_t i = 0; i < s.layers; ++i)
    if (s.kv_heads[i] == 0)
      s.kinds[i] = LayerKind::kShortConv;
  header.arch["linear_conv_kernel_dim"] = s.conv_taps;
  return {};
}

Status read_delta(const GgufKeys& keys, GgufHeader& header) {
  GgufSizes& s = header.sizes;
  DeltaSizes& d = s.delta;
  CORTIQ_ASSIGN_OR_RETURN(d.taps, keys.size("ssm.conv_kernel"));
  CORTIQ_ASSIGN_OR_RETURN(d.key_size, keys.size("ssm.state_size"));
  d.value_size = d.key_size;
  CORTIQ_ASSIGN_OR_RETURN(d.key_heads, keys.size("ssm.group_count"));
  CORTIQ_ASSIGN_OR_RETURN(d.value_heads, keys.size("ssm.time_step_rank"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t inner, keys.size("ssm.inner_size"));
  if (d.value_heads % d.key_heads != 0 || inner != d.values() || d.channels() > kMostSize)
    return invalid("keys " + keys.name("ssm.time_step_rank") + ", " + keys.name("ssm.group_count") + ", " +
                   keys.name("ssm.state_size") + " and " + keys.name("ssm.inner_size") + " contradict each other");
  std::vector<bool> recurrent(s.layers);
  if (keys.has("attention.recurrent_layers")) {
    CORTIQ_ASSIGN_OR_RETURN(recurrent,
                            keys.file().get_per_layer_bool(keys.name("attention.recurrent_layers"), s.layers));
  } else {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t interval, keys.size_or("full_attention_interval", 4));
    for (uint64_t i = 0; i < s.layers; ++i)
      recurrent[i] = (i + 1) % interval != 0;
  }
  for (uint64_t i = 0; i < s.layers; ++i)
    if (recurrent[i])
      s.kinds[i] = LayerKind::kGatedDelta;
  add_delta_fields(d, header.arch);
  return {};
}

} // namespace

Status read_gguf_mixers(const GgufKeys& keys, const GgufArch& arch, GgufHeader& header) {
  header.sizes.kinds.assign(header.sizes.layers, LayerKind::kAttention);
  CORTIQ_RETURN_IF_ERROR(read_windows(keys, arch, header));
  if (arch.mixer == GgufMixer::kLatent)
    CORTIQ_RETURN_IF_ERROR(read_latent(keys, header));
  if (arch.mixer == GgufMixer::kShortConv)
    CORTIQ_RETURN_IF_ERROR(read_short_conv(keys, header));
  if (arch.mixer == GgufMixer::kGatedDelta)
    CORTIQ_RETURN_IF_ERROR(read_delta(keys, header));
  header.arch["layer_types"] = layer_type_names(header.sizes.kinds);
  return {};
}

} // namespace cortiq::convert

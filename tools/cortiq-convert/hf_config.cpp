#include "tools/cortiq-convert/hf_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "formats/quote.h"
#include "tools/cortiq-convert/rope_fields.h"

namespace cortiq::convert {

using formats::Json;
using formats::quote;

namespace {

constexpr uint64_t kMostSize = uint64_t{1} << 31; // what a CMF header holds
constexpr uint64_t kMostLayers = 65536;

class ConfigReader {
public:
  explicit ConfigReader(const Json& config) : config_(config) {}

  StatusOr<HfHeader> read() {
    CORTIQ_RETURN_IF_ERROR(read_type());
    CORTIQ_RETURN_IF_ERROR(read_sizes());
    CORTIQ_RETURN_IF_ERROR(read_layers());
    CORTIQ_RETURN_IF_ERROR(read_rope());
    return std::move(out_);
  }

private:
  /// The field, null where it is absent or null.
  static const Json* field(const Json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  StatusOr<uint64_t> size(const char* name, std::optional<uint64_t> otherwise = std::nullopt) const {
    const Json* value = field(config_, name);
    if (!value && otherwise)
      return *otherwise;
    if (!value || !value->is_number_unsigned() || *value == 0 || value->get<uint64_t>() > kMostSize)
      return invalid(std::string(name) + (value ? " is no size that a model can have" : " is missing"));
    return value->get<uint64_t>();
  }

  static StatusOr<double> number(const Json& object, const char* name, std::optional<double> otherwise = std::nullopt) {
    const Json* value = field(object, name);
    if (!value && otherwise)
      return *otherwise;
    if (!value || !value->is_number() || !std::isfinite(value->get<double>()))
      return invalid(std::string(name) + (value ? " is no finite number" : " is missing"));
    return value->get<double>();
  }

  StatusOr<bool> flag(const char* name, bool otherwise) const {
    const Json* value = field(config_, name);
    if (value && !value->is_boolean())
      return invalid(std::string(name) + " is neither true nor false");
    return value ? value->get<bool>() : otherwise;
  }

  Status read_type() {
    const Json* type = field(config_, "model_type");
    if (!type || !type->is_string())
      return invalid("model_type is missing");
    const std::string& name = type->get_ref<const std::string&>();
    out_.type = find_hf_arch(name);
    if (!out_.type)
      return unsupported("model_type " + quote(name) + " cannot be converted; known are " +
                         std::string(hf_arch_names()));
    if (field(config_, "quantization_config"))
      return unsupported("the checkpoint is quantized already (quantization_config); take the unquantized one");
    out_.arch = Json::object();
    out_.arch["arch_name"] = out_.type->cmf_name;
    return {};
  }

  Status read_sizes() {
    HfSizes& s = out_.sizes;
    CORTIQ_ASSIGN_OR_RETURN(s.hidden, size("hidden_size"));
    CORTIQ_ASSIGN_OR_RETURN(s.feed_forward, size("intermediate_size"));
    CORTIQ_ASSIGN_OR_RETURN(s.layers, size("num_hidden_layers"));
    CORTIQ_ASSIGN_OR_RETURN(s.heads, size("num_attention_heads"));
    CORTIQ_ASSIGN_OR_RETURN(s.kv_heads, size("num_key_value_heads", s.heads));
    CORTIQ_ASSIGN_OR_RETURN(s.head_dim, size("head_dim", s.hidden / s.heads));
    CORTIQ_ASSIGN_OR_RETURN(s.vocab, size("vocab_size"));
    CORTIQ_ASSIGN_OR_RETURN(s.tied, flag("tie_word_embeddings", false));
    CORTIQ_ASSIGN_OR_RETURN(context_, size("max_position_embeddings"));
    CORTIQ_ASSIGN_OR_RETURN(const double eps, number(config_, "rms_norm_eps", 1e-6));
    if (s.layers > kMostLayers || s.heads % s.kv_heads != 0 || s.head_dim == 0 || s.head_dim % 2 != 0 || eps < 0)
      return invalid("num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim or rms_norm_eps cannot be "
                     "those of a model");
    Json& arch = out_.arch;
    arch["hidden_size"] = s.hidden;
    arch["intermediate_size"] = s.feed_forward;
    arch["num_layers"] = s.layers;
    arch["num_attention_heads"] = s.heads;
    arch["num_kv_heads"] = s.kv_heads;
    arch["head_dim"] = s.head_dim;
    arch["vocab_size"] = s.vocab;
    arch["tie_word_embeddings"] = s.tied;
    arch["max_position_embeddings"] = context_;
    arch["rms_norm_eps"] = eps;
    arch["norm_style"] = "qwen";
    return read_activation();
  }

  Status read_activation() {
    const Json* act = field(config_, "hidden_act");
    const std::string name = act && act->is_string() ? act->get<std::string>() : "silu";
    if (name == "silu" || name == "gelu")
      out_.arch["hidden_act"] = name;
    else if (name == "gelu_pytorch_tanh")
      out_.arch["hidden_act"] = "gelu_tanh";
    else
      return unsupported("hidden_act is " + quote(name) + "; silu, gelu and gelu_pytorch_tanh can be converted");
    return {};
  }

  Status read_layers() {
    std::vector<std::string> types(out_.sizes.layers, "FullAttention");
    const Json* window = out_.type->window == HfWindow::kNever ? nullptr : field(config_, "sliding_window");
    CORTIQ_ASSIGN_OR_RETURN(const bool used, flag("use_sliding_window", false));
    if (out_.type->window == HfWindow::kSwitched && !used)
      window = nullptr;
    if (window) {
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t width, size("sliding_window"));
      if (width < context_) { // a wider one never hides anything
        CORTIQ_RETURN_IF_ERROR(mark_windows(types));
        out_.arch["sliding_window"] = width;
      }
    }
    out_.arch["layer_types"] = std::move(types);
    return {};
  }

  Status mark_windows(std::vector<std::string>& types) {
    windows_ = true;
    if (const Json* list = field(config_, "layer_types")) {
      if (!list->is_array() || list->size() != types.size())
        return invalid("layer_types is not a list of num_hidden_layers entries");
      for (size_t i = 0; i < types.size(); ++i) {
        if ((*list)[i] == "sliding_attention")
          types[i] = "SlidingAttention";
        else if ((*list)[i] != "full_attention")
          return unsupported("layer_types has an entry that is neither full_attention nor sliding_attention");
      }
      return {};
    }
    uint64_t first = 0;
    if (out_.type->window == HfWindow::kSwitched) {
      CORTIQ_ASSIGN_OR_RETURN(first, size("max_window_layers", types.size()));
    }
    for (size_t i = first; i < types.size(); ++i)
      types[i] = "SlidingAttention";
    return {};
  }

  Status read_rope() {
    // Newer files have one object for all of it, older ones the base beside rope_scaling.
    static const Json kNone = Json::object();
    const Json* newer = field(config_, "rope_parameters");
    const Json* older = field(config_, "rope_scaling");
    const Json& scaling = newer ? *newer : older ? *older : kNone;
    if (!scaling.is_object())
      return invalid("rope_scaling is no object");
    CORTIQ_ASSIGN_OR_RETURN(double base, number(config_, "rope_theta", 10000));
    CORTIQ_ASSIGN_OR_RETURN(base, number(scaling, "rope_theta", base));
    if (base <= 0)
      return invalid("rope_theta is not positive");
    out_.arch["rope_theta"] = base;
    const Json* type = field(scaling, "rope_type") ? field(scaling, "rope_type") : field(scaling, "type");
    const std::string name = type && type->is_string() ? type->get<std::string>() : "default";
    if (name == "default")
      return {};
    CORTIQ_ASSIGN_OR_RETURN(const double factor, number(scaling, "factor"));
    if (factor <= 0)
      return invalid("the factor of rope_scaling is not positive");
    if (name == "linear") {
      out_.arch["rope_freq_factors"] = std::vector<double>(out_.sizes.head_dim / 2, factor);
      return {};
    }
    if (name == "llama3")
      return read_llama3(scaling, base, factor);
    if (name == "yarn")
      return read_yarn(scaling, factor);
    return unsupported("the rope_type is " + quote(name) + "; default, linear, llama3 and yarn can be converted");
  }

  Status read_llama3(const Json& scaling, double base, double factor) {
    Llama3Scaling llama3{.factor = factor};
    CORTIQ_ASSIGN_OR_RETURN(llama3.low, number(scaling, "low_freq_factor"));
    CORTIQ_ASSIGN_OR_RETURN(llama3.high, number(scaling, "high_freq_factor"));
    CORTIQ_ASSIGN_OR_RETURN(llama3.original_context, number(scaling, "original_max_position_embeddings"));
    if (!(llama3.high > llama3.low) || !(llama3.original_context > 0))
      return invalid("rope_scaling has frequency factors or a context that make no sense");
    out_.arch["rope_freq_factors"] = llama3_factors(base, out_.sizes.head_dim, llama3);
    return {};
  }

  Status read_yarn(const Json& scaling, double factor) {
    if (windows_)
      return unsupported("yarn together with a sliding window: CMF does not scale window layers");
    for (const char* name : {"mscale", "mscale_all_dim"})
      if (field(scaling, name))
        return unsupported(std::string("rope_scaling has ") + name + ", which is not known for this model_type");
    if (const Json* truncate = field(scaling, "truncate"); truncate && *truncate == false)
      return unsupported("rope_scaling asks for bounds that are not rounded (truncate), which CMF has no field for");
    CORTIQ_ASSIGN_OR_RETURN(const double original,
                            number(scaling, "original_max_position_embeddings", static_cast<double>(context_)));
    CORTIQ_ASSIGN_OR_RETURN(const double fast, number(scaling, "beta_fast", 32));
    CORTIQ_ASSIGN_OR_RETURN(const double slow, number(scaling, "beta_slow", 1));
    CORTIQ_ASSIGN_OR_RETURN(const double attention,
                            number(scaling, "attention_factor", factor > 1 ? 0.1 * std::log(factor) + 1 : 1));
    if (original < 1 || original > static_cast<double>(kMostSize))
      return invalid("original_max_position_embeddings is no size that a model can have");
    out_.arch["yarn"] = {{"factor", factor},
                         {"original_max_position_embeddings", static_cast<uint64_t>(original)},
                         {"beta_fast", fast},
                         {"beta_slow", slow},
                         {"attention_factor", attention}};
    return {};
  }

  const Json& config_;
  HfHeader out_;
  uint64_t context_ = 0;
  bool windows_ = false;
};

} // namespace

StatusOr<HfHeader> read_hf_config(const Json& config) {
  if (!config.is_object())
    return invalid("it is no JSON object");
  return ConfigReader(config).read();
}

} // namespace cortiq::convert

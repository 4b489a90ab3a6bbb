#include "compiler/frontend/cmf/Flint.h"

#include <algorithm>
#include <array>

#include "compiler/frontend/ModelDescription.h"

namespace cortiq::compiler {

namespace {

constexpr uint64_t kLayers = 49;
constexpr std::array<uint64_t, 14> kStill = {0, 1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 48}; // layers without RoPE

} // namespace

Status checkCmfFlint(const formats::CmfFile& file) {
  const formats::CmfArch& arch = file.arch();
  if (arch.arch_name != "flint")
    return {};
  const formats::CmfMoe moe = arch.moe.value_or(formats::CmfMoe());
  struct Fact {
    const char* name;
    uint64_t found, expected;
  };
  for (const Fact& fact :
       {Fact{"num_layers", arch.num_layers, kLayers}, Fact{"hidden_size", arch.hidden_size, 2048},
        Fact{"num_attention_heads", arch.num_attention_heads, 32}, Fact{"num_kv_heads", arch.num_kv_heads, 4},
        Fact{"head_dim", arch.head_dim, 128}, Fact{"vocab_size", arch.vocab_size, 150144},
        Fact{"sliding_window", arch.sliding_window.value_or(0), 513}, Fact{"moe.num_experts", moe.num_experts, 256},
        Fact{"moe.top_k", moe.top_k, 6}, Fact{"moe.router_sigmoid", moe.router_sigmoid, 1},
        Fact{"moe.norm_topk_prob", moe.norm_topk_prob, 1}})
    if (fact.found != fact.expected)
      return unsupported(std::string("arch.") + fact.name + " is " + std::to_string(fact.found) +
                         ", but models of architecture 'flint' have " + std::to_string(fact.expected));
  for (uint64_t i = 0; i < kLayers; ++i) {
    const bool still = std::ranges::find(kStill, i) != kStill.end();
    if (!arch.no_rope_layers || i >= arch.no_rope_layers->size() || (*arch.no_rope_layers)[i] != still)
      return unsupported("arch.no_rope_layers does not say of layer " + std::to_string(i) +
                         (still ? " that it keeps" : " that it rotates") +
                         " its heads, as models of architecture 'flint' do");
    if (std::ranges::none_of(std::array{"sinks", "attention_sink_bias", "softmax_offset"}, [&](const char* word) {
          return file.find(layerName(static_cast<int64_t>(i), std::string("self_attn.") + word)) != nullptr;
        }))
      return unsupported("layer " + std::to_string(i) +
                         " has no attention sinks, which models of architecture 'flint' have in every layer");
  }
  return {};
}

} // namespace cortiq::compiler

#include <cstring>

#include "formats/atomic_file.h"
#include "formats/gguf/gguf_value.h"
#include "tools/cortiq-bench/synthetic/model_file.h"

namespace cortiq::bench {
namespace {

using formats::GgufType;

constexpr uint64_t kAlignment = 32;

/// Bytes of a GGUF head in the making.
class Head {
public:
  template <class T>
  void number(T value) {
    const size_t at = bytes.size();
    bytes.resize(at + sizeof(value));
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  }
  void text(std::string_view value) {
    number(uint64_t{value.size()});
    bytes.insert(bytes.end(), value.begin(), value.end());
  }
  std::vector<uint8_t> bytes;
};

class Entries {
public:
  void text(const std::string& key, std::string_view value) {
    begin(key, GgufType::kString);
    head.text(value);
  }
  void size(const std::string& key, uint64_t value) {
    begin(key, GgufType::kU32);
    head.number(static_cast<uint32_t>(value));
  }
  void real(const std::string& key, float value) {
    begin(key, GgufType::kF32);
    head.number(value);
  }
  uint64_t count = 0;
  Head head;

private:
  void begin(const std::string& key, GgufType type) {
    ++count;
    head.text(key);
    head.number(static_cast<uint32_t>(type));
  }
};

Entries metadata(const SyntheticSpec& spec) {
  const SyntheticShape& s = spec.shape;
  const std::string arch = s.moe() ? "qwen3moe" : "llama", a = arch + ".";
  Entries e;
  e.text("general.architecture", arch);
  e.text("general.name", spec.title());
  e.size(a + "block_count", s.layers);
  e.size(a + "context_length", s.context);
  e.size(a + "embedding_length", s.hidden);
  e.size(a + "feed_forward_length", s.ffn);
  e.size(a + "attention.head_count", s.heads);
  e.size(a + "attention.head_count_kv", s.kv_heads);
  e.size(a + "attention.key_length", s.head_dim);
  e.size(a + "attention.value_length", s.head_dim);
  e.real(a + "attention.layer_norm_rms_epsilon", 1e-5f);
  e.real(a + "rope.freq_base", 500000);
  e.size(a + "rope.dimension_count", s.head_dim);
  e.size(a + "vocab_size", s.vocab);
  if (s.moe()) {
    e.size(a + "expert_count", s.experts);
    e.size(a + "expert_used_count", s.used);
    e.size(a + "expert_feed_forward_length", s.expert_ffn);
  }
  e.text("tokenizer.ggml.model", "no_vocab");
  return e;
}

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

} // namespace

Status write_gguf(const SyntheticSpec& spec, Payloads payloads, const std::string& path) {
  const std::vector<SyntheticTensor> tensors = synthetic_tensors(spec);
  const Entries entries = metadata(spec);
  Head head;
  head.bytes = {'G', 'G', 'U', 'F'};
  head.number(uint32_t{3});
  head.number(uint64_t{tensors.size()});
  head.number(entries.count);
  head.bytes.insert(head.bytes.end(), entries.head.bytes.begin(), entries.head.bytes.end());
  uint64_t offset = 0;
  for (const SyntheticTensor& tensor : tensors) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, tensor.bytes());
    head.text(tensor.name);
    head.number(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t d = tensor.shape.size(); d-- > 0;)
      head.number(tensor.shape[d]);
    head.number(static_cast<uint32_t>(tensor.codec->gguf_code));
    head.number(offset);
    offset += aligned(bytes);
  }
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  CORTIQ_RETURN_IF_ERROR(file.write(head.bytes));
  CORTIQ_RETURN_IF_ERROR(file.pad_to(kAlignment));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (payloads == Payloads::kRandom || tensors[i].codec->variable_size) {
      CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, random_payload(tensors[i], spec.seed, i));
      CORTIQ_RETURN_IF_ERROR(file.write(payload));
      CORTIQ_RETURN_IF_ERROR(file.pad_to(kAlignment));
    } else {
      CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, tensors[i].bytes());
      CORTIQ_RETURN_IF_ERROR(file.extend_to(file.size() + aligned(bytes)));
    }
  }
  return file.commit();
}

} // namespace cortiq::bench

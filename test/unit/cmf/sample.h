#pragma once

// Small headers and files for tests of the CMF reader and writer.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/cmf/cmf_file.h"
#include "formats/cmf/cmf_writer.h"
#include "test/unit/base/test_files.h"

namespace cortiq::formats {

/// The smallest header that a reader accepts.
inline Json minimal_header() {
  return {{"format", "cmf"},
          {"version", 2},
          {"quant_type", "F32"},
          {"arch",
           {{"arch_name", "llama"},
            {"hidden_size", 64},
            {"intermediate_size", 128},
            {"num_layers", 1},
            {"num_attention_heads", 2},
            {"num_kv_heads", 1},
            {"head_dim", 32},
            {"vocab_size", 256},
            {"layer_types", {"FullAttention"}},
            {"rms_norm_eps", 1e-6},
            {"max_position_embeddings", 128}}}};
}

/// A masks section with one mask for minimal_header(): one FFN row of 16 bytes, one head byte, one gate byte.
inline std::vector<uint8_t> sample_masks() {
  const std::string meta = R"({"default_task":"t","masks":[{"task_id":1,"name":"t","description":null,"sparsity":0.5,)"
                           R"("quality":null,"parent":null,"priority":"Fallback","blob_off":BLOB,"blob_len":18}]})";
  const size_t blob = (8 + meta.size() + 7) / 8 * 8; // BLOB is replaced by as many digits and spaces
  std::string text = meta;
  std::string digits = std::to_string(blob);
  digits.resize(4, ' ');
  text.replace(text.find("BLOB"), 4, digits);
  std::vector<uint8_t> out(blob + 18, 0);
  out[0] = 1;
  out[4] = static_cast<uint8_t>(text.size());
  out[5] = static_cast<uint8_t>(text.size() >> 8);
  std::copy(text.begin(), text.end(), out.begin() + 8);
  for (size_t i = blob; i < out.size(); ++i)
    out[i] = static_cast<uint8_t>(i);
  return out;
}

/// Writes a file with tensors of several codecs, a masks and a vocab section; returns what is wrong, if anything.
inline Status write_sample(const std::string& path) {
  Json header = minimal_header();
  header["tokenizer_config"] = {{"chat_template", "{{ x }}"}, {"eos_token_ids", {3, 4}}, {"bos_token_id", 1}};
  CmfWriter writer(header);
  const std::vector<uint8_t> masks = sample_masks();
  const std::vector<uint8_t> payload(32768, 0x3C);
  const auto bytes = [&](size_t n) { return std::span(payload).first(n); };
  writer.add_tensor("scalar", 0, {}, bytes(4));
  writer.add_tensor("norm", 1, {64}, bytes(128));
  writer.add_tensor("q8", 3, {2, 64}, bytes(132));
  writer.add_tensor("q4tp", 15, {2, 64}, bytes(76));
  writer.add_tensor("q1", 12, {2, 64}, bytes(24));
  writer.add_tensor("large", 0, {128, 64}, bytes(32768));
  writer.set_masks(masks);
  writer.set_vocab(test::bytes_of("{\"model\":{}}"));
  return writer.write(path);
}

} // namespace cortiq::formats

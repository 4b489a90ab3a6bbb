#include "tools/cortiq-bench/synthetic/model_file.h"

#include <cstring>

#include "formats/layout/layout.h"
#include "tools/cortiq-bench/synthetic/low_rank.h"

namespace cortiq::bench {

std::string model_extension(const SyntheticSpec& spec) {
  return spec.cmf ? "cmf" : "gguf";
}

StatusOr<std::vector<uint8_t>> random_payload(const SyntheticTensor& tensor, uint64_t seed, uint64_t number) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, tensor.bytes());
  std::vector<uint8_t> out(bytes);
  if (tensor.ones) {
    const float one = 1;
    for (size_t i = 0; i < out.size(); i += sizeof(one))
      std::memcpy(out.data() + i, &one, sizeof(one));
    return out;
  }
  if (tensor.codec->id == formats::CodecId::kBLR)
    return low_rank_payload(tensor.rows(), tensor.cols(), seed + number);
  CORTIQ_RETURN_IF_ERROR(formats::fill_random(*tensor.codec, formats::LayoutId::kVerbatim, tensor.rows(), tensor.cols(),
                                              seed + number, out)
                             .with_prefix("--synthetic: " + tensor.name));
  return out;
}

Status write_model(const SyntheticSpec& spec, Payloads payloads, const std::string& path) {
  return spec.cmf ? write_cmf(spec, payloads, path) : write_gguf(spec, payloads, path);
}

} // namespace cortiq::bench

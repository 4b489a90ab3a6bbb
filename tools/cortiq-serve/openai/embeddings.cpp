#include "tools/cortiq-serve/openai/embeddings.h"

#include <sodium.h>

#include "tools/cortiq-serve/openai/ask.h"
#include "tools/cortiq-serve/openai/prompt.h"

namespace cortiq::serve {
namespace {

constexpr size_t kMostInputs = 2048;

/// The first of a vector, stretched to length 1 again.
std::vector<float> shortened(const std::vector<float>& vector, uint64_t count) {
  std::vector<float> out(vector.begin(), vector.begin() + static_cast<std::ptrdiff_t>(count));
  runtime::stretch_to_one(out);
  return out;
}

/// Little-endian f32, as every machine that this runs on has them.
std::string base64_of(const std::vector<float>& vector) {
  const size_t bytes = vector.size() * sizeof(float);
  std::string out(sodium_base64_encoded_len(bytes, sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(vector.data()), bytes,
                    sodium_base64_VARIANT_ORIGINAL);
  out.pop_back(); // the closing zero
  return out;
}

} // namespace

StatusOr<EmbeddingAsk> parse_embeddings(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  EmbeddingAsk out;
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<std::string> name, fields.text("model"));
  out.model = name.value_or(model.id);
  CORTIQ_ASSIGN_OR_RETURN(out.overlay, model.find(out.model));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<std::string> format, fields.text("encoding_format"));
  if (format.value_or("float") != "float" && *format != "base64")
    return invalid("`encoding_format` has to be float or base64");
  out.base64 = format == "base64";
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<std::string> pooling, fields.text("pooling"));
  out.pooling = model.pooling;
  if (pooling) {
    const std::optional<runtime::Pooling> known = runtime::parse_pooling(*pooling);
    if (!known)
      return invalid("`pooling` has to be mean or last");
    out.pooling = *known;
  }
  const uint64_t hidden = model.model->info().hidden;
  CORTIQ_ASSIGN_OR_RETURN(out.dimensions, fields.whole("dimensions", hidden));
  if (out.dimensions == 0u)
    return invalid("`dimensions` has to be at least 1");
  if (const Json* input = fields.find("input"); input && input->is_array() && input->empty())
    return invalid("`input` is empty; give a text, token ids, or several of them");
  CORTIQ_ASSIGN_OR_RETURN(out.inputs, parse_prompts(fields, "input", kMostInputs, model));
  for (std::vector<uint32_t>& input : out.inputs) {
    Request request;
    request.prompt = std::move(input);
    CORTIQ_RETURN_IF_ERROR(fit_context(request, model));
    input = std::move(request.prompt);
  }
  return out;
}

Json embeddings_json(const EmbeddingAsk& ask, const std::vector<std::vector<float>>& vectors) {
  Json data = Json::array();
  uint64_t tokens = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    tokens += ask.inputs[i].size();
    const std::vector<float> vector = ask.dimensions ? shortened(vectors[i], *ask.dimensions) : vectors[i];
    data.push_back(
        {{"object", "embedding"}, {"index", i}, {"embedding", ask.base64 ? Json(base64_of(vector)) : Json(vector)}});
  }
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", ask.model},
          {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

} // namespace cortiq::serve

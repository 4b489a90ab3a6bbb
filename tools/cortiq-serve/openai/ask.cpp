#include "tools/cortiq-serve/openai/ask.h"

#include <charconv>
#include <sodium.h>

namespace cortiq::serve {
namespace {

constexpr uint64_t kMostChoices = 128;
constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopBytes = 1024;

StatusOr<std::vector<std::string>> parse_stops(const Fields& fields) {
  std::vector<std::string> out;
  const Json* stop = fields.find("stop");
  if (!stop)
    return out;
  const Json list = stop->is_string() ? Json::array({*stop}) : *stop;
  if (!list.is_array() || list.size() > kMaxStops)
    return invalid("`stop` has to be a string, or an array of at most " + std::to_string(kMaxStops));
  for (const Json& text : list) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty() ||
        text.get_ref<const std::string&>().size() > kMaxStopBytes)
      return invalid("each `stop` has to be a string of 1 to " + std::to_string(kMaxStopBytes) + " bytes");
    out.push_back(text);
  }
  return out;
}

StatusOr<std::vector<std::pair<uint32_t, float>>> parse_bias(const Fields& fields, uint64_t vocab) {
  std::vector<std::pair<uint32_t, float>> out;
  const Json* bias = fields.find("logit_bias");
  if (!bias)
    return out;
  if (!bias->is_object())
    return invalid("`logit_bias` has to be an object of token ids");
  for (const auto& [name, value] : bias->items()) {
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    const double amount = value.is_number() ? value.get<double>() : 1000;
    if (error != std::errc() || end != name.data() + name.size() || id >= vocab || !(amount >= -100 && amount <= 100))
      return invalid("`logit_bias` has to give token ids below " + std::to_string(vocab) + " numbers from -100 to 100");
    out.emplace_back(id, static_cast<float>(amount));
  }
  return out;
}

StatusOr<runtime::sampling::SamplingOptions> parse_sampling(const Fields& fields, const ServedModel& model) {
  runtime::sampling::SamplingOptions out;
  const auto take = [&](const char* name, double least, double most, double fallback) -> StatusOr<float> {
    CORTIQ_ASSIGN_OR_RETURN(const std::optional<double> value, fields.number(name, least, most));
    return static_cast<float>(value.value_or(fallback));
  };
  CORTIQ_ASSIGN_OR_RETURN(out.temperature, take("temperature", 0, 2, 1));
  CORTIQ_ASSIGN_OR_RETURN(out.top_p, take("top_p", 0, 1, 1));
  CORTIQ_ASSIGN_OR_RETURN(out.min_p, take("min_p", 0, 1, 0));
  CORTIQ_ASSIGN_OR_RETURN(out.presence_penalty, take("presence_penalty", -2, 2, 0));
  CORTIQ_ASSIGN_OR_RETURN(out.frequency_penalty, take("frequency_penalty", -2, 2, 0));
  CORTIQ_ASSIGN_OR_RETURN(out.repetition_penalty, take("repetition_penalty", 0.01, 100, 1));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> top_k, fields.whole("top_k", UINT32_MAX));
  out.top_k = static_cast<uint32_t>(top_k.value_or(0));
  CORTIQ_ASSIGN_OR_RETURN(out.bias, parse_bias(fields, model.model->info().vocab));
  // Nothing is left of a share of 0: the most likely token.
  if (out.top_p == 0)
    out.temperature = 0, out.top_p = 1;
  const Json* seed = fields.find("seed");
  if (seed && !seed->is_number_integer())
    return invalid("`seed` has to be a whole number");
  if (seed)
    out.seed = seed->is_number_unsigned() ? seed->get<uint64_t>() : static_cast<uint64_t>(seed->get<int64_t>());
  else
    randombytes_buf(&out.seed, sizeof out.seed);
  return out;
}

} // namespace

StatusOr<Common> parse_common(const Fields& fields, const ServedModel& model, uint64_t default_tokens) {
  Common out;
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> choices, fields.whole("n", kMostChoices));
  out.choices = choices.value_or(1);
  if (out.choices == 0)
    return invalid("`n` has to be at least 1");
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<std::string> name, fields.text("model"));
  out.model = name.value_or(model.id);
  CORTIQ_ASSIGN_OR_RETURN(out.request.overlay, model.find(out.model));
  CORTIQ_ASSIGN_OR_RETURN(out.request.sampling, parse_sampling(fields, model));
  CORTIQ_ASSIGN_OR_RETURN(out.request.stops, parse_stops(fields));
  CORTIQ_ASSIGN_OR_RETURN(out.request.ignore_end, fields.flag("ignore_eos", false));
  constexpr uint64_t kMost = 1u << 30;
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> limit, fields.whole("max_tokens", kMost));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<uint64_t> newer, fields.whole("max_completion_tokens", kMost));
  out.request.max_tokens = newer.value_or(limit.value_or(default_tokens));
  CORTIQ_ASSIGN_OR_RETURN(out.stream, fields.flag("stream", false));
  if (const Json* options = fields.find("stream_options")) {
    if (!options->is_object())
      return invalid("`stream_options` has to be an object");
    CORTIQ_ASSIGN_OR_RETURN(out.include_usage, Fields(*options).flag("include_usage", false));
  }
  return out;
}

Status fit_text(uint64_t bytes, const ServedModel& model) {
  const uint64_t most = model.max_context * model.longest_token;
  if (bytes <= most)
    return {};
  return invalid("the prompt has " + std::to_string(bytes) + " bytes, and the context of " +
                 std::to_string(model.max_context) + " tokens holds at most " + std::to_string(most));
}

Status fit_context(Request& request, const ServedModel& model) {
  if (request.prompt.empty() && model.text->config.bos_id)
    request.prompt.push_back(*model.text->config.bos_id);
  if (request.prompt.empty())
    return invalid("the prompt is empty and the model has no token to begin with");
  if (request.prompt.size() > model.max_context)
    return invalid("the prompt has " + std::to_string(request.prompt.size()) + " tokens, the context holds " +
                   std::to_string(model.max_context));
  return {};
}

StatusOr<std::vector<Request>> spread(const Common& common, const std::vector<std::vector<uint32_t>>& prompts,
                                      const std::optional<ConstraintSource>& constraint, const ServedModel& model) {
  if (prompts.size() * common.choices > model.most_choices)
    return invalid("the request asks for " + std::to_string(prompts.size() * common.choices) +
                   " answers; this server takes on at most " + std::to_string(model.most_choices) + " at a time");
  std::vector<Request> out;
  for (const std::vector<uint32_t>& prompt : prompts) {
    Request request = common.request;
    request.prompt = prompt;
    CORTIQ_RETURN_IF_ERROR(fit_context(request, model));
    for (uint64_t i = 0; i < common.choices; ++i) {
      out.push_back(request);
      out.back().sampling.seed += i;
    }
  }
  if (constraint)
    for (Request& request : out) {
      CORTIQ_ASSIGN_OR_RETURN(request.constraint, model.constraints->make(constraint->notation, constraint->source));
    }
  return out;
}

} // namespace cortiq::serve

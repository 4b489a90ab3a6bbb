#include <string>

#include "api/calls.h"
#include "api/handles.h"
#include "formats/quote.h"
#include "runtime/cli/device_word.h"
#include "runtime/cli/gpu_choice.h"
#include "runtime/text/conversation.h"

namespace {

using cortiq::Status;
using namespace cortiq::api;
namespace runtime = cortiq::runtime;
namespace text = cortiq::runtime::text;

Status no_tokenizer(const cortiq_model& model) {
  return cortiq::unsupported("the model has no tokenizer" +
                             (model.text_absent.empty() ? "" : ": " + model.text_absent));
}

/// Puts the model on the GPUs of the options.
Status open_device(const cortiq_load_options& how, cortiq_model& model) {
  if (!how.device)
    return {};
  const std::string word = how.device;
  if (word != "auto" && runtime::cli::parse_devices(word).empty())
    return cortiq::invalid("device takes auto, or numbers of GPUs with commas between them, not " +
                           cortiq::formats::quote(word));
  runtime::cli::GpuChoice choice;
  choice.device = word;
  choice.cpu_fallback = model.cpu_fallback = how.cpu_fallback != 0;
  choice.progress = false;
  choice.room.memory = how.device_memory;
  CORTIQ_ASSIGN_OR_RETURN(model.gpu, runtime::cli::choose_gpu(*model.model, choice, [&](const std::string& sentence) {
                            model.device_note += (model.device_note.empty() ? "" : "\n") + sentence;
                          }));
  if (model.gpu)
    model.device = model.gpu->device().name;
  return {};
}

} // namespace

cortiq_status cortiq_model_load(const char* path, const cortiq_load_options* options, cortiq_model** model) {
  return guarded([&]() -> Status {
    if (!path || !model)
      return cortiq::invalid("cortiq_model_load() needs a path and a place for the model");
    *model = nullptr;
    const cortiq_load_options how = options_or<cortiq_load_options>(options, CORTIQ_LOAD_OPTIONS);
    cortiq::runtime::LoadOptions load;
    load.verify_weights = how.verify_weights != 0;
    load.memory = how.memory;
    if (how.require_key) {
      CORTIQ_ASSIGN_OR_RETURN(load.require_key, cortiq::formats::read_public_key(how.require_key, "require_key"));
    }
    load.placement = {.large_pages = how.large_pages != 0, .numa = how.numa != 0};
    auto out = std::make_unique<cortiq_model>();
    CORTIQ_ASSIGN_OR_RETURN(out->model, cortiq::runtime::Model::load(path, load));
    CORTIQ_RETURN_IF_ERROR(open_device(how, *out));
    out->text_absent = out->model->info().text_absent;
    if (!out->model->tokenizer().empty()) {
      // Ids in, ids out works without: what is wrong with the tokenizer is said where text is asked for.
      cortiq::StatusOr<text::TextModel> opened = text::open_text_section(out->model->tokenizer());
      if (opened.ok())
        out->text = std::make_shared<const text::TextModel>(*std::move(opened));
      else
        out->text_absent = opened.status().message();
    }
    *model = out.release();
    return {};
  });
}

void cortiq_model_free(cortiq_model* model) {
  delete model;
}

cortiq_status cortiq_model_describe(const cortiq_model* model, cortiq_model_info* info) {
  return guarded([&]() -> Status {
    if (!model || !info)
      return cortiq::invalid("cortiq_model_describe() needs a model and a place for what it says");
    const cortiq::runtime::ModelInfo& from = model->model->info();
    cortiq_model_info out = CORTIQ_MODEL_INFO;
    out.name = from.name.c_str();
    out.architecture = from.architecture.c_str();
    out.target = from.target.c_str();
    out.text_absent = model->text_absent.c_str();
    out.exact = from.exact ? 1 : 0;
    out.hidden = from.hidden;
    out.layers = from.layers;
    out.vocab = from.vocab;
    out.max_context = from.max_context;
    out.weight_bytes = from.weight_bytes;
    out.skills = model->model->overlay().skills.size();
    out.masks = model->model->overlay().masks.size();
    out.device = model->device.c_str();
    out.device_note = model->device_note.c_str();
    fill(info, out);
    return {};
  });
}

const char* cortiq_model_skill(const cortiq_model* model, uint64_t index) {
  if (!model)
    return nullptr;
  const auto& skills = model->model->overlay().skills;
  return index < skills.size() ? skills[index].id.c_str() : nullptr;
}

const char* cortiq_model_mask(const cortiq_model* model, uint64_t index) {
  if (!model)
    return nullptr;
  const auto& masks = model->model->overlay().masks;
  return index < masks.size() ? masks[index].name.c_str() : nullptr;
}

cortiq_status cortiq_encode(const cortiq_model* model, const char* text, size_t length, uint32_t flags, uint32_t* ids,
                            size_t capacity, size_t* count) {
  return guarded([&]() -> Status {
    if (!model || (!text && length != 0))
      return cortiq::invalid("cortiq_encode() needs a model and a text");
    if (!model->text)
      return no_tokenizer(*model);
    const text::EncodeOptions options = {(flags & CORTIQ_ADD_SPECIAL) != 0, (flags & CORTIQ_PARSE_SPECIAL) != 0};
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint32_t> out,
                            model->text->tokenizer.encode(std::string_view(text, length), options));
    fill(out, ids, capacity, count);
    return {};
  });
}

cortiq_status cortiq_decode(const cortiq_model* model, const uint32_t* ids, size_t id_count, char* text,
                            size_t capacity, size_t* count) {
  return guarded([&]() -> Status {
    if (!model || (!ids && id_count != 0))
      return cortiq::invalid("cortiq_decode() needs a model and ids");
    if (!model->text)
      return no_tokenizer(*model);
    CORTIQ_ASSIGN_OR_RETURN(const std::string out, model->text->tokenizer.decode({ids, id_count}));
    fill(out, text, capacity, count);
    return {};
  });
}

cortiq_status cortiq_encode_chat(const cortiq_model* model, const char* json, size_t length, uint32_t* ids,
                                 size_t capacity, size_t* count) {
  return guarded([&]() -> Status {
    if (!model || !json)
      return cortiq::invalid("cortiq_encode_chat() needs a model and a conversation");
    if (!model->text)
      return no_tokenizer(*model);
    CORTIQ_ASSIGN_OR_RETURN(const text::EncodedChat chat,
                            text::encode_conversation(*model->text, {json, length}, text::local_time_now()));
    fill(chat.ids, ids, capacity, count);
    return {};
  });
}

// What cortiq's Python package calls: cortiq.hpp for Python. The package's own modules give it the shape that users
// see.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cortiq.hpp>

namespace nb = nanobind;

namespace {

using Ids = std::vector<uint32_t>;
using Rows = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

/// A copy: the session's own logits live until its next call only.
Rows copy_of(const cortiq::Logits& logits) {
  auto* values = new float[logits.rows * logits.columns];
  std::memcpy(values, logits.data, logits.rows * logits.columns * sizeof(float));
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  return Rows(values, {logits.rows, logits.columns}, owner);
}

cortiq_load_options load_options(bool verify_weights, uint64_t memory, bool large_pages,
                                 const std::optional<std::string>& require_key,
                                 const std::optional<std::string>& device, uint64_t device_memory, bool cpu_fallback) {
  cortiq_load_options options = CORTIQ_LOAD_OPTIONS;
  options.require_key = require_key ? require_key->c_str() : nullptr;
  options.verify_weights = verify_weights ? 1 : 0;
  options.memory = memory;
  options.large_pages = large_pages ? 1 : 0;
  options.device = device ? device->c_str() : nullptr;
  options.device_memory = device_memory;
  options.cpu_fallback = cpu_fallback ? 1 : 0;
  return options;
}

cortiq::Session open_session(const cortiq::Model& model, uint32_t threads, uint64_t max_context,
                             const std::optional<std::string>& kv) {
  cortiq_session_options options = CORTIQ_SESSION_OPTIONS;
  options.threads = threads;
  options.max_context = max_context;
  options.kv = kv ? kv->c_str() : nullptr;
  return cortiq::Session(model, options);
}

void put_in_force(cortiq::Session& session, const std::optional<std::string>& skill,
                  const std::optional<std::string>& mask) {
  session.select(skill ? skill->c_str() : nullptr, mask ? mask->c_str() : nullptr);
}

nb::dict describe(const cortiq::Model& model) {
  const cortiq_model_info info = model.info();
  nb::dict out;
  out["name"] = info.name;
  out["architecture"] = info.architecture;
  out["target"] = info.target;
  out["text_absent"] = info.text_absent;
  out["exact"] = info.exact != 0;
  out["hidden"] = info.hidden;
  out["layers"] = info.layers;
  out["vocab"] = info.vocab;
  out["max_context"] = info.max_context;
  out["weight_bytes"] = info.weight_bytes;
  out["device"] = info.device;
  out["device_note"] = info.device_note;
  return out;
}

/// Runs without Python's lock; `on_token(id, text: bytes)` runs with it, and ends the generation by returning False.
cortiq_result generate(cortiq::Session& session, const Ids& ids, const nb::callable& on_token, const Ids& stop_ids,
                       const cortiq_generate_options& given) {
  cortiq_generate_options options = given;
  options.stop_ids = stop_ids.data();
  options.stop_id_count = stop_ids.size();
  const nb::gil_scoped_release unlocked;
  return session.generate(
      ids,
      [&](uint32_t id, std::string_view text) {
        const nb::gil_scoped_acquire locked;
        const nb::object said =
            on_token(id == CORTIQ_NO_ID ? nb::none() : nb::object(nb::int_(id)), nb::bytes(text.data(), text.size()));
        return said.is_none() || nb::cast<bool>(said);
      },
      options);
}

} // namespace

NB_MODULE(_core, m) {
  m.attr("__version__") = cortiq_version();
  static nb::object error_type = nb::exception<cortiq::Error>(m, "Error");
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const cortiq::Error& error) {
      nb::object value = error_type(error.what());
      value.attr("status") = error.status();
      PyErr_SetObject(error_type.ptr(), value.ptr());
    }
  });
  for (const auto& [name, status] :
       {std::pair("INVALID", CORTIQ_INVALID), std::pair("UNSUPPORTED", CORTIQ_UNSUPPORTED), std::pair("IO", CORTIQ_IO),
        std::pair("INTERNAL", CORTIQ_INTERNAL), std::pair("NO_MEMORY", CORTIQ_NO_MEMORY),
        std::pair("CANCELLED", CORTIQ_CANCELLED)})
    m.attr(name) = static_cast<int>(status);

  nb::class_<cortiq::Model>(m, "Model")
      .def(
          "__init__",
          [](cortiq::Model* self, const std::string& path, bool verify_weights, uint64_t memory, bool large_pages,
             const std::optional<std::string>& require_key, const std::optional<std::string>& device,
             uint64_t device_memory, bool cpu_fallback) {
            const nb::gil_scoped_release unlocked;
            new (self) cortiq::Model(path, load_options(verify_weights, memory, large_pages, require_key, device,
                                                        device_memory, cpu_fallback));
          },
          nb::arg("path"), nb::arg("verify_weights"), nb::arg("memory"), nb::arg("large_pages"),
          nb::arg("require_key").none(), nb::arg("device").none(), nb::arg("device_memory"), nb::arg("cpu_fallback"))
      .def("describe", &describe)
      .def("skills", &cortiq::Model::skills)
      .def("masks", &cortiq::Model::masks)
      .def("encode",
           [](const cortiq::Model& self, std::string_view text, bool add_special, bool parse_special) {
             return self.encode(text,
                                (add_special ? CORTIQ_ADD_SPECIAL : 0u) | (parse_special ? CORTIQ_PARSE_SPECIAL : 0u));
           })
      .def("decode",
           [](const cortiq::Model& self, const Ids& ids) {
             const std::string text = self.decode(ids);
             return nb::bytes(text.data(), text.size());
           })
      .def("encode_chat", &cortiq::Model::encode_chat);

  nb::class_<cortiq_generate_options>(m, "GenerateOptions")
      .def("__init__",
           [](cortiq_generate_options* self) { new (self) cortiq_generate_options(CORTIQ_GENERATE_OPTIONS); })
      .def_rw("max_tokens", &cortiq_generate_options::max_tokens)
      .def_rw("temperature", &cortiq_generate_options::temperature)
      .def_rw("top_k", &cortiq_generate_options::top_k)
      .def_rw("top_p", &cortiq_generate_options::top_p)
      .def_rw("min_p", &cortiq_generate_options::min_p)
      .def_rw("repetition_penalty", &cortiq_generate_options::repetition_penalty)
      .def_rw("presence_penalty", &cortiq_generate_options::presence_penalty)
      .def_rw("penalty_window", &cortiq_generate_options::penalty_window)
      .def_rw("seed", &cortiq_generate_options::seed)
      .def_prop_rw(
          "ignore_end", [](const cortiq_generate_options& self) { return self.ignore_end != 0; },
          [](cortiq_generate_options& self, bool ignore) { self.ignore_end = ignore ? 1 : 0; });

  nb::class_<cortiq_result>(m, "Counts")
      .def_ro("finish", &cortiq_result::finish)
      .def_ro("prompt_tokens", &cortiq_result::prompt_tokens)
      .def_ro("tokens", &cortiq_result::tokens)
      .def_ro("prefill_seconds", &cortiq_result::prefill_seconds)
      .def_ro("first_token_seconds", &cortiq_result::first_token_seconds)
      .def_ro("decode_seconds", &cortiq_result::decode_seconds)
      .def_ro("guessed", &cortiq_result::guessed)
      .def_ro("accepted", &cortiq_result::accepted);

  nb::class_<cortiq::Session>(m, "Session")
      .def(
          "__init__",
          [](cortiq::Session* self, const cortiq::Model& model, uint32_t threads, uint64_t max_context,
             const std::optional<std::string>& kv) {
            const nb::gil_scoped_release unlocked;
            new (self) cortiq::Session(open_session(model, threads, max_context, kv));
          },
          nb::arg("model"), nb::arg("threads"), nb::arg("max_context"), nb::arg("kv").none())
      .def_prop_ro("position", &cortiq::Session::position)
      .def("rewind", &cortiq::Session::rewind)
      .def("keep", &cortiq::Session::keep)
      .def("ids", &cortiq::Session::ids)
      .def("save", &cortiq::Session::save, nb::call_guard<nb::gil_scoped_release>())
      .def("load", &cortiq::Session::load, nb::call_guard<nb::gil_scoped_release>())
      .def("run",
           [](cortiq::Session& self, const Ids& ids, bool all) {
             cortiq::Logits logits;
             {
               const nb::gil_scoped_release unlocked;
               logits = self.run(ids, all);
             }
             return copy_of(logits);
           })
      .def("append",
           [](cortiq::Session& self, uint32_t id) {
             cortiq::Logits logits;
             {
               const nb::gil_scoped_release unlocked;
               logits = self.append(id);
             }
             return copy_of(logits);
           })
      .def("embed",
           [](cortiq::Session& self, const Ids& ids, bool last) {
             std::vector<float> vector;
             {
               const nb::gil_scoped_release unlocked;
               vector = self.embed(ids, last ? CORTIQ_POOL_LAST : CORTIQ_POOL_MEAN);
             }
             return copy_of({vector.data(), 1, vector.size()});
           })
      .def("select", &put_in_force, nb::arg("skill").none(), nb::arg("mask").none())
      .def("cancel", &cortiq::Session::cancel)
      .def("generate", &generate);
}

#include <cmath>

#include "formats/cmf/cmf_extensions.h"
#include "formats/cmf/hash64.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

Status expect_word(const std::string& name, const std::string& word, const std::string& expected) {
  return word == expected ? Status() : invalid(name + " is " + quote(word) + ", expected " + quote(expected));
}

struct Phi {
  uint32_t layer = 0;
};

StatusOr<Phi> read_phi(const Json& json, const CmfArch& arch) {
  Phi out;
  std::string pool, norm;
  std::vector<uint32_t> prefix, suffix;
  JsonFields f(json, "router.phi");
  f.required("layer", out.layer);
  f.required("pool", pool);
  f.required("norm", norm);
  f.required("prefix_ids", prefix);
  f.required("suffix_ids", suffix);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (out.layer >= arch.num_layers)
    return invalid("router.phi.layer is " + std::to_string(out.layer) + " of " + std::to_string(arch.num_layers) +
                   " layers");
  if (pool != "span_mean" && pool != "key_span")
    return invalid("router.phi.pool is " + quote(pool) + ", expected span_mean or key_span");
  CORTIQ_RETURN_IF_ERROR(expect_word("router.phi.norm", norm, "unit"));
  return out;
}

Status check_descriptor(const Json& json, const std::string& where, const Phi& phi, const CmfArch& arch) {
  CORTIQ_ASSIGN_OR_RETURN(const CmfSelection selection, check_cmf_selection(json, where, arch.hidden_size));
  CORTIQ_RETURN_IF_ERROR(expect_word(where + ".metric", selection.metric, "mse_unit"));
  if (selection.phi_layer != phi.layer)
    return invalid(where + ".phi_layer is " + std::to_string(selection.phi_layer) + ", but router.phi.layer is " +
                   std::to_string(phi.layer));
  return {};
}

/// A skill that the router may choose: its layers begin behind the one that the choice is made from.
Status check_class(const Json& skill, const std::string& where, const Phi& phi, const CmfArch& arch) {
  std::optional<std::string> kind;
  std::optional<std::vector<uint32_t>> layers;
  JsonFields f(skill, where);
  f.optional("kind", kind);
  f.optional("layers", layers);
  const Json* selection = f.present("selection");
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (!kind || !selection)
    return {};
  CORTIQ_RETURN_IF_ERROR(check_descriptor(*selection, where + ".selection", phi, arch));
  for (const uint32_t layer : layers.value_or(std::vector<uint32_t>()))
    if (layer <= phi.layer)
      return invalid(where + ".layers has " + std::to_string(layer) + ", which is not behind router.phi.layer " +
                     std::to_string(phi.layer));
  return {};
}

} // namespace

Status check_cmf_router(const CmfFile& file) {
  const JsonFields header(file.header(), "header");
  const Json* router = header.present("router");
  if (router == nullptr)
    return {};
  uint32_t version = 0;
  double margin = 0;
  std::string policy, granularity, hash;
  JsonFields f(*router, "router");
  f.required("version", version);
  f.required("policy", policy);
  f.required("granularity", granularity);
  f.required("margin", margin);
  f.required("skills_hash", hash);
  const Json* phi_json = f.present("phi");
  const Json* base = f.present("base");
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (version != 2)
    return invalid("router.version is " + std::to_string(version) + ", expected 2");
  CORTIQ_RETURN_IF_ERROR(expect_word("router.policy", policy, "backbone_gated"));
  CORTIQ_RETURN_IF_ERROR(expect_word("router.granularity", granularity, "request"));
  if (!std::isfinite(margin) || margin < 0)
    return invalid("router.margin is " + std::to_string(margin) + ", expected a finite number from 0");
  if (!parse_hash64(hash))
    return invalid("router.skills_hash is " + quote(hash) + ", not sixteen hexadecimal digits");
  if (!phi_json || !base)
    return invalid("router.phi or router.base is missing");
  CORTIQ_ASSIGN_OR_RETURN(const Phi phi, read_phi(*phi_json, file.arch()));
  CORTIQ_RETURN_IF_ERROR(check_descriptor(*base, "router.base", phi, file.arch()));
  const Json* skills = header.present("skills");
  for (size_t i = 0; skills && i < skills->size(); ++i)
    CORTIQ_RETURN_IF_ERROR(check_class((*skills)[i], "skills[" + std::to_string(i) + "]", phi, file.arch()));
  return {};
}

} // namespace cortiq::formats

#include "runtime/cli/overlay.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "formats/quote.h"

namespace cortiq::runtime::cli {
namespace {

void print_scores(const formats::OverlayCatalog& catalog, const formats::Routing& routing) {
  for (const formats::SkillScore& score : routing.scores)
    std::fprintf(stderr, "skill %-20s E %.4f\n", formats::printable(catalog.skills[score.skill].id).c_str(),
                 score.relative);
  std::fprintf(stderr, "%s (%s %.4f, threshold %.4f)\n",
               routing.skill ? ("routed to skill " + formats::printable(catalog.skills[*routing.skill].id)).c_str()
                             : "novel prompt, no skill",
               catalog.calibration ? "novelty" : "E", routing.novelty, routing.threshold);
}

/// The skill of --skill auto, as a word for the request.
StatusOr<std::string> route_prompt(std::span<const uint32_t> prompt, Loaded& loaded) {
  const formats::OverlayCatalog& catalog = loaded.engine->overlay();
  CORTIQ_RETURN_IF_ERROR(check_routing(catalog));
  CORTIQ_ASSIGN_OR_RETURN(const formats::ResidualMeans means, loaded.engine->residual_means(prompt));
  loaded.routing = formats::route(catalog, means);
  print_scores(catalog, *loaded.routing);
  return loaded.routing->skill ? catalog.skills[*loaded.routing->skill].id : "none";
}

} // namespace

Status check_routing(const formats::OverlayCatalog& catalog) {
  if (formats::routing_layers(catalog).empty())
    return unsupported("no skill of the model says what prompts it is for; name one with --skill ID");
  return {};
}

Status apply_overlay(const RunOptions& options, std::span<const uint32_t> prompt, Loaded& loaded) {
  formats::OverlayRequest request{options.skill, {}, options.task};
  loaded.routing.reset();
  if (!options.blend.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(request.blend, formats::parse_blend(options.blend));
  }
  if (request.skill == "auto") {
    CORTIQ_ASSIGN_OR_RETURN(request.skill, route_prompt(prompt, loaded));
  }
  CORTIQ_ASSIGN_OR_RETURN(loaded.selection, formats::select_overlay(loaded.engine->overlay(), request));
  return loaded.engine->set_overlay(loaded.selection);
}

std::string overlay_json(const Loaded& loaded) {
  const formats::OverlayCatalog& catalog = loaded.engine->overlay();
  nlohmann::ordered_json out;
  out["skills"] = nlohmann::ordered_json::array();
  for (const formats::OverlayShare& share : loaded.selection.shares)
    out["skills"].push_back({{"id", catalog.skills[share.skill].id}, {"weight", share.weight}});
  out["task"] = loaded.selection.mask ? nlohmann::ordered_json(catalog.masks[*loaded.selection.mask].name)
                                      : nlohmann::ordered_json(nullptr);
  if (loaded.routing) {
    auto& scores = out["scores"] = nlohmann::ordered_json::array();
    for (const formats::SkillScore& score : loaded.routing->scores)
      scores.push_back({{"id", catalog.skills[score.skill].id}, {"e", score.relative}});
    out["novelty"] = loaded.routing->novelty;
    out["threshold"] = loaded.routing->threshold;
  }
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace cortiq::runtime::cli

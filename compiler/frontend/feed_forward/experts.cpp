// Mixtures of experts: a router chooses some of them for each token; a shared expert, where there is one, sees all.

#include "compiler/frontend/feed_forward/FeedForward.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

cmf::ActivationAttr activationOf(GraphBuilder& graph) {
  return cmf::ActivationAttr::get(graph.ops().getContext(), graph.model().activation);
}

cmf::RoutingAttr routingOf(GraphBuilder& graph, const RoutingDescription& routing) {
  auto optional = [&](std::optional<double> value) { return value ? graph.real(*value) : FloatAttr(); };
  return cmf::RoutingAttr::get(graph.ops().getContext(), routing.topK, routing.scoring, optional(routing.normEpsilon),
                               optional(routing.normMinimum),
                               routing.scale != 1 ? graph.real(routing.scale) : FloatAttr(), routing.groups,
                               routing.groupsUsed);
}

/// The router on `routerX` and the experts on `x`.
Value buildRouted(GraphBuilder& graph, int64_t index, Value routerX, Value x) {
  const RoutingDescription& routing = graph.model().layer(index).routing;
  auto name = [&](const std::string& suffix) { return layerName(index, "mlp." + suffix); };
  // A part of all experts that have it.
  auto all = [&](const std::string& part) {
    SmallVector<Value> values;
    for (int64_t e = 0; e < routing.experts; ++e)
      if (Value value = graph.weight(name("experts." + std::to_string(e) + "." + part)))
        values.push_back(value);
    return values;
  };
  Value logits = routing.resonance
                     ? graph
                           .create<cmf::ResonanceOp>(graph.activations(routing.experts), routerX, all("desc.mu"),
                                                     all("desc.u"), all("desc.bias"), all("desc.shell"))
                           .getResult()
                     : graph.linear(routerX, name("gate"));
  const auto ids = RankedTensorType::get({ShapedType::kDynamic, routing.topK}, graph.ops().getI32Type());
  auto route =
      graph.create<cmf::MoeRouteOp>(ids, graph.activations(routing.topK), logits, graph.weight(name("expert_bias")),
                                    graph.weight(name("per_expert_scale")), routingOf(graph, routing));
  return graph.create<cmf::MoeExpertsOp>(
      x.getType(), x, route.getIds(), route.getWeights(), all("gate_proj.weight"), all("up_proj.weight"),
      all("down_proj.weight"), all("gate_proj.bias"), all("up_proj.bias"), all("down_proj.bias"), activationOf(graph),
      graph.activationNumber(graph.model().activationAlpha), graph.activationNumber(graph.model().activationLimit));
}

} // namespace

Value buildExperts(GraphBuilder& graph, int64_t index, Value x, Value) {
  auto name = [&](const std::string& suffix) { return layerName(index, "mlp." + suffix); };
  Value routed = buildRouted(graph, index, x, x);
  if (!graph.model().find(name("shared_expert.gate_proj.weight")))
    return routed;
  Value gate = graph.linear(x, name("shared_expert.gate_proj"));
  Value up = graph.linear(x, name("shared_expert.up_proj"));
  Value shared = graph.linear(graph.gated(gate, up), name("shared_expert.down_proj"));
  if (graph.model().find(name("shared_expert_gate.weight")))
    shared =
        graph.create<cmf::GateOp>(shared, graph.linear(x, name("shared_expert_gate")),
                                  cmf::GateFunctionAttr::get(graph.ops().getContext(), cmf::GateFunction::sigmoid));
  return graph.create<cmf::AddOp>(routed, shared);
}

// CMF specification 3.8: the router reads the residual stream, without factors and normed only where the experts have
// scales; the experts read it through a norm of their own.
Value buildDualExperts(GraphBuilder& graph, int64_t index, Value x, Value h) {
  auto name = [&](std::string_view suffix) { return layerName(index, suffix); };
  Value dense = graph.norm(buildGatedFeedForward(graph, index, x, h), name("post_feedforward_layernorm_1"));
  Value routerX = graph.model().find(name("mlp.per_expert_scale")) ? graph.rmsNorm(h, Value(), 0) : h;
  Value routed = buildRouted(graph, index, routerX, graph.norm(h, name("pre_feedforward_layernorm_2")));
  return graph.create<cmf::AddOp>(dense, graph.norm(routed, name("post_feedforward_layernorm_2")));
}

} // namespace cortiq::compiler

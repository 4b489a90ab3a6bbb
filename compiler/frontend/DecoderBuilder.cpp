#include "compiler/frontend/DecoderBuilder.h"

#include <numeric>

#include "compiler/frontend/GraphBuilder.h"
#include "compiler/frontend/OverlayPoints.h"
#include "compiler/frontend/feed_forward/FeedForward.h"
#include "compiler/frontend/mixers/Mixers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";

DictionaryAttr modelAttr(OpBuilder& builder, const ModelDescription& model) {
  auto number = [&](StringRef key, int64_t value) {
    return builder.getNamedAttr(key, builder.getI64IntegerAttr(value));
  };
  return builder.getDictionaryAttr({builder.getNamedAttr("architecture", builder.getStringAttr(model.architecture)),
                                    builder.getNamedAttr("name", builder.getStringAttr(model.name)),
                                    number("hidden", model.hidden), number("layers", model.layers.size()),
                                    number("vocab", model.vocab), number("trained_context", model.trainedContext)});
}

// A layer with norms around its feed-forward block is a sandwich: the norm after attention then belongs to its output.
Value buildLayer(GraphBuilder& graph, LayerDescription layer, int64_t block, int64_t cache, Value h) {
  layer.cache = cache;
  auto name = [&](StringRef suffix) { return layerName(block, suffix); };
  const bool sandwich = graph.model().find(name("pre_feedforward_layernorm.weight")) ||
                        graph.model().find(name("post_feedforward_layernorm.weight"));
  // What a block adds, in the model's measure.
  auto addTo = [&](Value stream, Value addend) {
    if (const double scale = graph.model().residualScale; scale != 1)
      addend = graph.create<cmf::ScaleOp>(addend, graph.real(scale));
    return graph.create<cmf::AddOp>(stream, addend);
  };
  Value mixed = mixerBuilder(layer.mixer)(graph, block, layer, graph.norm(h, name("input_layernorm")));
  if (sandwich)
    mixed = graph.norm(mixed, name("post_attention_layernorm"));
  h = addTo(h, mixed);
  Value x = graph.norm(h, name(sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
  Value f = feedForwardBuilder(layer.feedForward)(graph, block, x, h);
  if (sandwich)
    f = graph.norm(f, name("post_feedforward_layernorm"));
  h = addTo(h, f);
  return layer.outputScale != 1 ? graph.create<cmf::ScaleOp>(h, graph.real(layer.outputScale)).getResult() : h;
}

Value buildEmbedding(GraphBuilder& graph, Value ids, const std::string& weight) {
  const ModelDescription& model = graph.model();
  // Rows of the model's embedding may stand behind a transform.
  const bool hidden = model.hadamard.block != 0 && weight == kEmbedding;
  Value h = graph.create<cmf::EmbedOp>(ids, graph.weight(weight), graph.real(hidden ? 1 : model.embedScale));
  if (!hidden)
    return h;
  h = graph.untransformed(h);
  return model.embedScale != 1 ? graph.create<cmf::ScaleOp>(h, graph.real(model.embedScale)).getResult() : h;
}

Value buildHead(GraphBuilder& graph, Value h, const std::string& norm, const std::string& ownWeight) {
  const ModelDescription& model = graph.model();
  h = graph.norm(h, norm);
  Value logits = graph.linear(h, "lm_head",
                              model.find(ownWeight)          ? ownWeight
                              : model.find("lm_head.weight") ? "lm_head.weight"
                                                             : kEmbedding);
  // Tokens without a row have the logit 0.
  if (const int64_t rows = cast<RankedTensorType>(logits.getType()).getDimSize(1); rows < model.vocab) {
    SmallVector<int64_t> from(model.vocab, -1);
    std::iota(from.begin(), from.begin() + rows, 0);
    logits = graph.create<cmf::PlaceOp>(graph.activations(model.vocab), logits, from);
  }
  if (model.logitScale != 1)
    logits = graph.create<cmf::ScaleOp>(logits, graph.real(model.logitScale));
  if (model.finalSoftcap != 0)
    logits = graph.create<cmf::SoftcapOp>(logits, graph.real(model.finalSoftcap));
  if (model.find("lm_head.clusters.weight"))
    logits = graph.create<cmf::ClusterLogitsOp>(logits, graph.linear(h, "lm_head.clusters"));
  return logits;
}

// Of the tokens that follow, and the stream that the trunk left at each position: logits of the tokens after those
// (CMF specification 3.13).
Value buildDraft(GraphBuilder& graph, Value next, Value stream) {
  const ModelDescription& model = graph.model();
  constexpr const char* kOwnEmbedding = "model.mtp.embed_tokens.weight";
  Value e = buildEmbedding(graph, next, model.find(kOwnEmbedding) ? kOwnEmbedding : kEmbedding);
  e = graph.norm(e, "model.mtp.enorm");
  Value h = graph.norm(stream, "model.mtp.hnorm");
  Value x = graph.linear(graph.create<cmf::ConcatHeadsOp>(e, h, 1, false), "model.mtp.eh_proj");
  x = buildLayer(graph, model.draft->layer, kDraftBlock, static_cast<int64_t>(model.layers.size()), x);
  return buildHead(graph, x, "model.mtp.norm", "model.mtp.lm_head.weight");
}

} // namespace

OwningOpRef<ModuleOp> buildModule(MLIRContext& context, const ModelDescription& model) {
  context.loadDialect<cmf::CMFDialect, func::FuncDialect>();
  GraphBuilder graph(context, model);
  OpBuilder& builder = graph.ops();
  OwningOpRef<ModuleOp> module = ModuleOp::create(graph.loc());
  (*module)->setAttr(cmf::kModelAttr, modelAttr(builder, model));
  builder.setInsertionPointToEnd(module->getBody());
  const auto ids = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  const size_t heads = model.draft ? 2 : 1;
  auto forward = graph.create<func::FuncOp>(
      cmf::kForwardName,
      builder.getFunctionType(SmallVector<Type>(heads, ids), SmallVector<Type>(heads, graph.activations(model.vocab))));
  Block* body = forward.addEntryBlock();
  builder.setInsertionPointToStart(body);

  Value h = buildEmbedding(graph, body->getArgument(0), kEmbedding);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const LayerDescription& layer = model.layers[i];
    h = endLayer(graph, index, h, buildLayer(graph, layer, layer.block.value_or(index), index, h));
    if (model.loopLength != 0 && (i + 1) % model.loopLength == 0 && i + 1 < model.layers.size())
      h = graph.norm(h, "model.norm");
  }
  SmallVector<Value> results = {buildHead(graph, h, "model.norm", "lm_head.weight")};
  if (model.draft)
    results.push_back(buildDraft(graph, body->getArgument(1), h));
  graph.create<func::ReturnOp>(results);
  addOverlayPoints(*module, model);
  return module;
}

} // namespace cortiq::compiler

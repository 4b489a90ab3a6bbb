#include "compiler/frontend/OverlayPoints.h"

#include "dialects/CMF/IR/OverlayCatalog.h"
#include "formats/overlay/routing.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

using formats::OverlayMask;

template <class Open>
bool everywhere(const ModelDescription& model, Open open) {
  return llvm::all_of(model.overlay.masks, open);
}

bool isOpen(const OverlayMask& mask, cmf::MaskAttr attr, int64_t bit) {
  switch (attr.getKind()) {
  case cmf::MaskKind::ffn:
    return mask.neuron(attr.getLayer(), bit);
  case cmf::MaskKind::heads:
    return mask.query_head(attr.getLayer(), bit);
  case cmf::MaskKind::experts:
    return mask.expert(attr.getLayer(), bit);
  }
  llvm_unreachable("every kind is above");
}

// The bits of `attr` that decide about `columns` columns.
bool areOpen(const OverlayMask& mask, cmf::MaskAttr attr, int64_t columns) {
  const int64_t bits = attr.getGroup() == 0 ? 1 : columns / attr.getGroup();
  for (int64_t i = attr.getFirst(); i < attr.getFirst() + bits; ++i)
    if (!isOpen(mask, attr, i))
      return false;
  return true;
}

int64_t columns(Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(1);
}

void setMask(Operation* op, const ModelDescription& model, cmf::MaskAttr attr, int64_t columns) {
  if (!everywhere(model, [&](const OverlayMask& mask) { return areOpen(mask, attr, columns); }))
    op->setAttr(cmf::kMaskAttr, attr);
}

// The name of the weight behind a product, of the first mean behind scores by resonance, or nothing.
StringRef weightName(Value product) {
  if (auto resonance = product.getDefiningOp<cmf::ResonanceOp>()) {
    auto mean = resonance.getMeans()[0].getDefiningOp<cmf::WeightOp>();
    return mean ? mean.getName() : StringRef();
  }
  if (auto bias = product.getDefiningOp<cmf::BiasAddOp>())
    product = bias.getX();
  auto matmul = product.getDefiningOp<cmf::MatmulOp>();
  auto dequant = matmul ? matmul.getMatrix().getDefiningOp<cmf::DequantOp>() : cmf::DequantOp();
  Value weight = dequant ? dequant.getWeight() : Value();
  if (auto overlay = weight ? weight.getDefiningOp<cmf::OverlayOp>() : cmf::OverlayOp())
    weight = overlay.getBase();
  auto op = weight ? weight.getDefiningOp<cmf::WeightOp>() : cmf::WeightOp();
  return op ? op.getName() : StringRef();
}

// Neurons of the dense blocks. Layers with a router ignore the bits (specification 4.2).
void maskBlocks(ModuleOp module, const ModelDescription& model) {
  llvm::StringMap<cmf::GluOp> blocks;
  module.walk([&](cmf::GluOp glu) {
    if (StringRef name = weightName(glu.getGate()); !name.empty())
      blocks.try_emplace(name, glu);
  });
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    const auto index = static_cast<int64_t>(layer);
    if (model.find(layerName(index, "mlp.gate.weight")))
      continue;
    int64_t first = 0;
    for (int64_t tube = 0;; ++tube) {
      const std::string suffix = tube == 0 ? "" : ".tube" + std::to_string(tube);
      cmf::GluOp glu = blocks.lookup(layerName(index, "mlp.gate_proj" + suffix + ".weight"));
      if (!glu)
        break;
      setMask(glu, model, cmf::MaskAttr::get(glu.getContext(), cmf::MaskKind::ffn, index, first, tube == 0 ? 1 : 0),
              columns(glu.getResult()));
      first += glu.getResult().getType().getDimSize(1);
    }
  }
}

} // namespace

Value endLayer(GraphBuilder& graph, int64_t layer, Value before, Value after) {
  const ModelDescription& model = graph.model();
  if (!everywhere(model, [&](const OverlayMask& mask) { return mask.gate(layer); }))
    after = graph.create<cmf::LayerGateOp>(before, after, graph.number(layer));
  if (llvm::is_contained(formats::routing_layers(model.overlay), layer))
    graph.create<cmf::TapOp>(after, graph.number(layer));
  return after;
}

void addOverlayPoints(ModuleOp module, const ModelDescription& model) {
  cmf::setOverlayCatalog(module, model.overlay);
  if (model.overlay.masks.empty())
    return;
  maskBlocks(module, model);
  module.walk([&](cmf::AttentionOp attention) {
    if (attention.getLayer() >= model.layers.size())
      return; // of the block that guesses
    setMask(
        attention, model,
        cmf::MaskAttr::get(attention.getContext(), cmf::MaskKind::heads, attention.getLayer(), 0, attention.getVDim()),
        columns(attention.getResult()));
  });
  // Not those of layers that have a dense block beside their experts (specification 3.8).
  module.walk([&](cmf::MoeRouteOp route) {
    unsigned layer;
    StringRef name = weightName(route.getLogits());
    if (!name.consume_front("model.layers.") || name.consumeInteger(10, layer) || layer >= model.layers.size() ||
        model.find(layerName(layer, "mlp.gate_proj.weight")))
      return;
    setMask(route, model, cmf::MaskAttr::get(route.getContext(), cmf::MaskKind::experts, layer, 0, 1),
            columns(route.getLogits()));
  });
}

} // namespace cortiq::compiler

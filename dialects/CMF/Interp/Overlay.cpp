#include "dialects/CMF/IR/OverlayCatalog.h"
#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

Status referenceLayerGate(Operation* op, Frame& frame) {
  auto gate = cast<LayerGateOp>(op);
  const formats::OverlayMask* mask = frame.overlay().mask();
  const bool open = !mask || mask->gate(gate.getLayer());
  frame.set(gate.getResult(), Array(frame.value(open ? gate.getAfter() : gate.getBefore())));
  return {};
}

Status referencePlace(Operation* op, Frame& frame) {
  auto place = cast<PlaceOp>(op);
  const Array& x = frame.value(place.getX());
  Array out(x.rows, place.getFrom().size());
  for (int64_t t = 0; t < x.rows; ++t)
    for (auto [c, from] : llvm::enumerate(place.getFrom()))
      out.row(t)[c] = from < 0 ? 0 : x.row(t)[from];
  frame.set(place.getResult(), std::move(out));
  return {};
}

Status referenceTap(Operation* op, Frame& frame) {
  if (!frame.taps().wanted)
    return {};
  auto tap = cast<TapOp>(op);
  const Array& x = frame.value(tap.getX());
  std::vector<double>& sum = frame.taps().sums[static_cast<uint32_t>(tap.getLayer())];
  sum.resize(x.cols);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t i = 0; i < x.cols; ++i)
      sum[i] += x.row(t)[i];
  return {};
}

void applyMask(Operation* op, Frame& frame) {
  const formats::OverlayMask* mask = frame.overlay().mask();
  auto attr = op->getAttrOfType<MaskAttr>(kMaskAttr);
  if (!mask || !attr || attr.getKind() == MaskKind::experts)
    return;
  Array cut = frame.value(op->getResult(0));
  for (int64_t c = 0; c < cut.cols; ++c) {
    const int64_t bit = attr.getFirst() + (attr.getGroup() == 0 ? 0 : c / attr.getGroup());
    const bool active =
        attr.getKind() == MaskKind::ffn ? mask->neuron(attr.getLayer(), bit) : mask->query_head(attr.getLayer(), bit);
    if (!active)
      for (int64_t t = 0; t < cut.rows; ++t)
        cut.row(t)[c] = 0;
  }
  frame.set(op->getResult(0), std::move(cut));
}

} // namespace cortiq::cmf

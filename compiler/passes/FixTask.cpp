// cmf-fix-task: a task mask becomes part of the model; what it switches off is not computed and not read.

#include "compiler/passes/Passes.h"
#include "dialects/CMF/IR/OverlayCatalog.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_CMFFIXTASK
#include "compiler/passes/Passes.h.inc"

namespace {

using formats::OverlayMask;
using Rows = SmallVector<int64_t>;

int64_t columns(Value activations) {
  return cast<RankedTensorType>(activations.getType()).getDimSize(1);
}

RankedTensorType withColumns(Value like, int64_t count) {
  auto type = cast<RankedTensorType>(like.getType());
  return RankedTensorType::get({type.getDimSize(0), count}, type.getElementType());
}

// Makes the rows `rows` of a weight, or of what computes a value from one, in front of what reads it.
class Narrowing {
public:
  Narrowing(OpBuilder& builder, ArrayRef<int64_t> rows) : builder_(builder), rows_(rows) {}

  /// The weight's rows; a vector's values.
  Value weight(Value value) {
    if (auto overlay = value.getDefiningOp<cmf::OverlayOp>()) {
      SmallVector<Value> alternatives;
      for (Value alternative : overlay.getAlternatives())
        alternatives.push_back(weight(alternative));
      Value base = weight(overlay.getBase());
      return builder_.create<cmf::OverlayOp>(overlay.getLoc(), base.getType(), base, alternatives,
                                             overlay.getSkillsAttr());
    }
    auto op = value.getDefiningOp<cmf::WeightOp>();
    const cmf::WeightType type = op.getType();
    SmallVector<int64_t> shape(type.getShape());
    const cmf::RowsAttr map = op.getRowsAttr();
    Rows picks(rows_);
    if (map && map.getPicks())
      for (int64_t& pick : picks)
        pick = map.getPicks()[pick];
    MLIRContext* context = builder_.getContext();
    const auto rows = map ? cmf::RowsAttr::get(context, map.getOf(), map.getFirst(), map.getDeinterleave(),
                                               map.getTake(), map.getPeriod(), builder_.getDenseI64ArrayAttr(picks))
                          : cmf::RowsAttr::get(context, shape[0], 0, 0, 0, 0, builder_.getDenseI64ArrayAttr(picks));
    shape[0] = static_cast<int64_t>(picks.size());
    return builder_.create<cmf::WeightOp>(op.getLoc(), cmf::WeightType::get(context, shape, type.getCodecId()),
                                          op.getName(), op.getSourceAttr(), rows);
  }

  /// A product's columns, through a bias and what works head by head; null where the value is made in another way.
  Value product(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op || !value.hasOneUse())
      return {};
    if (auto matmul = dyn_cast<cmf::MatmulOp>(op)) {
      auto dequant = matmul.getMatrix().getDefiningOp<cmf::DequantOp>();
      if (!dequant)
        return {};
      Value decoded = builder_.create<cmf::DequantOp>(dequant.getLoc(), weight(dequant.getWeight()));
      return builder_.create<cmf::MatmulOp>(matmul.getLoc(), matmul.getX(), decoded);
    }
    auto bias = dyn_cast<cmf::BiasAddOp>(op);
    auto norm = dyn_cast<cmf::RmsNormOp>(op);
    if (!bias && !isa<cmf::RopeOp>(op) && !(norm && norm.getGroup()))
      return {};
    Value inner = product(op->getOperand(0));
    if (!inner)
      return {};
    if (bias)
      return builder_.create<cmf::BiasAddOp>(bias.getLoc(), inner, weight(bias.getBias()));
    Operation* same = builder_.clone(*op);
    same->setOperand(0, inner);
    same->getResult(0).setType(inner.getType());
    return same->getResult(0);
  }

private:
  OpBuilder& builder_;
  ArrayRef<int64_t> rows_;
};

// Column c of the whole is column from[c] of the part; -1: it is off.
Value place(OpBuilder& builder, Value part, Value whole, ArrayRef<int64_t> from) {
  return builder.create<cmf::PlaceOp>(whole.getLoc(), withColumns(whole, static_cast<int64_t>(from.size())), part,
                                      builder.getDenseI64ArrayAttr(from));
}

class FixTask : public impl::CmfFixTaskBase<FixTask> {
public:
  using impl::CmfFixTaskBase<FixTask>::CmfFixTaskBase;

  void runOnOperation() override {
    if (task.empty())
      return;
    ModuleOp module = getOperation();
    formats::OverlayCatalog catalog = cmf::overlayCatalog(module);
    const std::optional<uint32_t> index = catalog.find_mask(task);
    if (!index) {
      auto error = module.emitError() << "it has no task '" << task << "'; it has:";
      for (const OverlayMask& mask : catalog.masks)
        error << " " << mask.name;
      if (catalog.masks.empty())
        error << " none";
      return signalPassFailure();
    }
    const OverlayMask mask = catalog.masks[*index];
    SmallVector<Operation*> masked;
    module.walk([&](Operation* op) {
      if (op->hasAttr(cmf::kMaskAttr) || isa<cmf::LayerGateOp>(op))
        masked.push_back(op);
    });
    // The choice of experts asks the mask at run time.
    const bool asked = llvm::any_of(masked, [](Operation* op) { return isa<cmf::MoeRouteOp>(op); });
    for (Operation* op : masked)
      fix(op, mask);
    eraseDead(module);
    catalog.masks.assign(asked ? 1 : 0, mask);
    catalog.fixed_task = task;
    cmf::setOverlayCatalog(module, catalog);
  }

private:
  static void fix(Operation* op, const OverlayMask& mask) {
    if (auto gate = dyn_cast<cmf::LayerGateOp>(op)) {
      gate.getResult().replaceAllUsesWith(mask.gate(gate.getLayer()) ? gate.getAfter() : gate.getBefore());
      return;
    }
    auto attr = op->getAttrOfType<cmf::MaskAttr>(cmf::kMaskAttr);
    if (attr.getKind() == cmf::MaskKind::experts) {
      dropExperts(cast<cmf::MoeRouteOp>(op), attr, mask);
      return;
    }
    op->removeAttr(cmf::kMaskAttr);
    Value result = op->getResult(0);
    // The columns that stay, in their order.
    Rows from(columns(result), -1), live;
    for (auto [c, place] : llvm::enumerate(from)) {
      const int64_t bit = attr.getFirst() + (attr.getGroup() == 0 ? 0 : static_cast<int64_t>(c) / attr.getGroup());
      const bool active = attr.getKind() == cmf::MaskKind::ffn ? mask.neuron(attr.getLayer(), bit)
                                                               : mask.query_head(attr.getLayer(), bit);
      if (active) {
        place = static_cast<int64_t>(c);
        live.push_back(static_cast<int64_t>(c));
      }
    }
    if (live.size() == from.size() || (live.empty() && dropBranch(result)))
      return;
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    Value cut;
    if (auto glu = dyn_cast<cmf::GluOp>(op); glu && !live.empty())
      cut = cutBlock(builder, glu, from, live);
    else if (auto attention = dyn_cast<cmf::AttentionOp>(op); attention && !live.empty())
      cut = cutHeads(builder, attention, from, mask);
    if (!cut)
      cut = place(builder, result, result, from);
    result.replaceAllUsesExcept(cut, cut.getDefiningOp());
  }

  // Closed experts are never chosen, or with weight 0: any open one's weights do in the place of theirs.
  static void dropExperts(cmf::MoeRouteOp route, cmf::MaskAttr attr, const OverlayMask& mask) {
    for (Operation* user : route.getIds().getUsers()) {
      auto experts = dyn_cast<cmf::MoeExpertsOp>(user);
      if (!experts)
        continue;
      const auto count = static_cast<int64_t>(experts.getGates().size());
      int64_t open = 0;
      while (open < count && !mask.expert(attr.getLayer(), open))
        ++open;
      for (MutableOperandRange role :
           {experts.getGatesMutable(), experts.getUpsMutable(), experts.getDownsMutable(),
            experts.getGateBiasesMutable(), experts.getUpBiasesMutable(), experts.getDownBiasesMutable()})
        for (int64_t e = 0; open < count && e < static_cast<int64_t>(role.size()); ++e)
          if (!mask.expert(attr.getLayer(), e))
            role[e].set(role[open].get());
    }
  }

  // A branch that adds nothing but zeros to the residual stream is left out.
  static bool dropBranch(Value zeros) {
    auto matmul = zeros.hasOneUse() ? dyn_cast<cmf::MatmulOp>(*zeros.user_begin()) : cmf::MatmulOp();
    if (!matmul || matmul.getX() != zeros || !matmul->hasOneUse())
      return false;
    auto add = dyn_cast<cmf::AddOp>(*matmul->user_begin());
    if (!add)
      return false;
    add.getResult().replaceAllUsesWith(add.getA() == matmul.getResult() ? add.getB() : add.getA());
    return true;
  }

  // Gate and up are computed for the live neurons alone.
  static Value cutBlock(OpBuilder& builder, cmf::GluOp glu, Rows from, ArrayRef<int64_t> live) {
    Narrowing narrow(builder, live);
    Value gate = narrow.product(glu.getGate()), up = gate ? narrow.product(glu.getUp()) : Value();
    if (!up)
      return {};
    for (auto [i, column] : llvm::enumerate(live))
      from[column] = static_cast<int64_t>(i);
    Operation* same = builder.clone(*glu);
    same->setOperands({gate, up});
    same->getResult(0).setType(withColumns(glu.getResult(), static_cast<int64_t>(live.size())));
    return place(builder, same->getResult(0), glu.getResult(), from);
  }

  // Key/value heads all of whose query heads are off are left out, with those; so are query heads where every group
  // that stays loses as many.
  static Value cutHeads(OpBuilder& builder, cmf::AttentionOp op, Rows from, const OverlayMask& mask) {
    // What every key/value head has of its own beside its rows stays with the whole.
    if (op.getAnchorKeys() || op.getGroupWindowsAttr())
      return {};
    const auto heads = static_cast<int64_t>(op.getHeads()), kvHeads = static_cast<int64_t>(op.getKvHeads());
    const int64_t shared = heads / kvHeads, layer = op.getLayer();
    Rows groups;
    SmallVector<Rows> alive; // query heads of each group that stays
    for (int64_t g = 0; g < kvHeads; ++g) {
      Rows own;
      for (int64_t h = g * shared; h < (g + 1) * shared; ++h)
        if (mask.query_head(layer, h))
          own.push_back(h);
      if (!own.empty()) {
        groups.push_back(g);
        alive.push_back(std::move(own));
      }
    }
    const bool even = llvm::all_of(alive, [&](const Rows& own) { return own.size() == alive[0].size(); });
    Rows kept;
    for (auto [g, own] : llvm::zip_equal(groups, alive)) {
      for (int64_t h = g * shared; h < (g + 1) * shared; ++h)
        if (!even || llvm::is_contained(own, h))
          kept.push_back(h);
    }
    if (static_cast<int64_t>(kept.size()) == heads)
      return {};
    auto rows = [](ArrayRef<int64_t> heads, int64_t width) {
      Rows out;
      for (int64_t head : heads)
        for (int64_t i = 0; i < width; ++i)
          out.push_back(head * width + i);
      return out;
    };
    const int64_t headDim = op.getHeadDim(), vDim = op.getVDim();
    const Rows qRows = rows(kept, headDim), kRows = rows(groups, headDim), vRows = rows(groups, vDim);
    Value q = Narrowing(builder, qRows).product(op.getQ());
    Value k = q ? Narrowing(builder, kRows).product(op.getK()) : Value();
    Value v = k ? Narrowing(builder, vRows).product(op.getV()) : Value();
    if (!v)
      return {};
    Value sinks = op.getSinks() ? Narrowing(builder, kept).weight(op.getSinks()) : Value();
    Operation* same = builder.clone(*op);
    same->setOperand(0, q);
    same->setOperand(1, k);
    same->setOperand(2, v);
    if (sinks)
      cast<cmf::AttentionOp>(same).getSinksMutable().assign(sinks);
    cast<cmf::AttentionOp>(same).setHeads(kept.size());
    cast<cmf::AttentionOp>(same).setKvHeads(groups.size());
    same->getResult(0).setType(withColumns(op.getResult(), static_cast<int64_t>(kept.size()) * vDim));
    for (auto [i, head] : llvm::enumerate(kept))
      for (int64_t c = 0; c < vDim; ++c)
        if (int64_t& place = from[head * vDim + c]; place >= 0)
          place = static_cast<int64_t>(i) * vDim + c;
    return place(builder, same->getResult(0), op.getResult(), from);
  }

  // An attention that nobody reads only fills a cache that nobody reads.
  static void eraseDead(ModuleOp module) {
    auto forward = module.lookupSymbol<func::FuncOp>(cmf::kForwardName);
    SmallVector<Operation*> ops;
    for (Operation& op : forward.getBody().front().without_terminator())
      ops.push_back(&op);
    for (Operation* op : llvm::reverse(ops))
      if (op->use_empty() && op->getNumResults() != 0 && (isMemoryEffectFree(op) || isa<cmf::AttentionOp>(op)))
        op->erase();
  }
};

} // namespace
} // namespace cortiq::compiler

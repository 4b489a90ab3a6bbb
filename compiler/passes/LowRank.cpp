#include "compiler/passes/LowRank.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

/// "a.b.q_proj.weight" -> "a.b.q_proj_v1.weight".
std::string factorName(StringRef name, StringRef factor, int64_t path) {
  constexpr StringLiteral kEnd = ".weight";
  const bool ends = name.ends_with(kEnd);
  return (name.drop_back(ends ? kEnd.size() : 0) + "_" + factor + Twine(path) + (ends ? kEnd : "")).str();
}

} // namespace

cmf::WeightOp lowRankWeight(Value weight) {
  auto op = weight.getDefiningOp<cmf::WeightOp>();
  return op && op.getType().getCodec().id == formats::CodecId::kBLR ? op : cmf::WeightOp();
}

bool knowsItsRank(cmf::WeightOp whole) {
  return whole.getSourceAttr() && whole.getSourceAttr().getLowRank();
}

cmf::WeightOp lowRankFactor(OpBuilder& builder, cmf::WeightOp whole, formats::CodecId codec, int64_t path) {
  const cmf::SourceAttr source = whole.getSourceAttr();
  const cmf::LowRankAttr lowRank = source.getLowRank();
  const bool isU = codec == formats::CodecId::kBLRU;
  const int64_t shape[] = {isU ? whole.getType().getRows() : lowRank.getRank(),
                           isU ? lowRank.getRank() : whole.getType().getCols()};
  MLIRContext* context = builder.getContext();
  return builder.create<cmf::WeightOp>(
      whole.getLoc(), cmf::WeightType::get(context, shape, codec), factorName(whole.getName(), isU ? "u" : "v", path),
      cmf::SourceAttr::get(context, source.getFile(), source.getOffset(), source.getBytes(),
                           cmf::LowRankAttr::get(context, lowRank.getPaths(), lowRank.getRank(), path)),
      isU ? whole.getRowsAttr() : cmf::RowsAttr());
}

} // namespace cortiq::compiler

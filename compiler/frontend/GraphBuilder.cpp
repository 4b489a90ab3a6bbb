#include "compiler/frontend/GraphBuilder.h"

#include "formats/cmf/cmf_overlay.h"
#include "formats/codec/low_rank.h"

using namespace mlir;

namespace cortiq::compiler {

GraphBuilder::GraphBuilder(MLIRContext& context, const ModelDescription& model)
    : model_(model), builder_(&context), loc_(builder_.getUnknownLoc()) {
  for (const RopeTable& table : model.ropes)
    ropes_.push_back(table.inverseFrequencies.empty()
                         ? cmf::RopeAttr()
                         : cmf::RopeAttr::get(&context, builder_.getDenseF32ArrayAttr(table.inverseFrequencies),
                                              builder_.getF32FloatAttr(table.magnitude)));
}

RankedTensorType GraphBuilder::activations(int64_t features) {
  return RankedTensorType::get({ShapedType::kDynamic, features}, builder_.getF32Type());
}

Value GraphBuilder::weight(const std::string& name) {
  if (Value known = values_.lookup(name))
    return known;
  const WeightRef* ref = model_.find(name);
  if (!ref)
    return {};
  Value value = weightOp(name, *ref);
  if (auto alternatives = model_.alternatives.find(name); alternatives != model_.alternatives.end()) {
    SmallVector<Value> values;
    SmallVector<int64_t> skills;
    for (const SkillWeight& alternative : alternatives->second) {
      const std::string& id = model_.overlay.skills[alternative.skill].id;
      values.push_back(weightOp(formats::skill_tensor_name(id, name), alternative.weight));
      skills.push_back(alternative.skill);
    }
    value = create<cmf::OverlayOp>(value.getType(), value, values, builder_.getDenseI64ArrayAttr(skills));
  }
  return values_[name] = value;
}

Value GraphBuilder::weightOp(const std::string& name, const WeightRef& ref) {
  const formats::Tensor& tensor = *ref.tensor;
  MLIRContext* context = builder_.getContext();
  const auto type = cmf::WeightType::get(context, ref.shape, tensor.codec->id);
  cmf::LowRankAttr lowRank;
  if (tensor.codec->id == formats::CodecId::kBLR)
    if (const auto shape = formats::read_low_rank(tensor.data); shape.ok())
      lowRank = cmf::LowRankAttr::get(context, shape->paths, shape->rank, 0);
  const auto source = cmf::SourceAttr::get(context, tensor.file, tensor.offset, tensor.data.size(), lowRank);
  // All values of a vector stand in one row, however the file shapes it.
  const int64_t fileRows = ref.shape.size() == 2 ? tensor.rows() : tensor.rows() * tensor.cols();
  cmf::RowsAttr rows;
  if (ref.first != 0 || ref.deinterleave != 0 || ref.take != 0 || fileRows != ref.shape[0])
    rows = cmf::RowsAttr::get(context, fileRows, ref.first, ref.deinterleave, ref.take, ref.period);
  return create<cmf::WeightOp>(type, name, source, rows);
}

Value GraphBuilder::linear(Value x, const std::string& name, const std::string& weightName) {
  const std::string& matrix = weightName.empty() ? name + ".weight" : weightName;
  if (const WeightRef* ref = model_.find(matrix))
    x = transformed(x, *ref);
  Value decoded = create<cmf::DequantOp>(weight(matrix));
  Value y = create<cmf::MatmulOp>(x, decoded);
  if (Value bias = weight(name + ".bias"))
    y = create<cmf::BiasAddOp>(y, bias);
  return y;
}

DenseBoolArrayAttr GraphBuilder::signs(Value x) {
  const std::vector<bool>& negative = model_.hadamard.negative.at(cast<RankedTensorType>(x.getType()).getDimSize(1));
  return builder_.getDenseBoolArrayAttr(SmallVector<bool>(negative.begin(), negative.end()));
}

Value GraphBuilder::transformed(Value x, const WeightRef& reader) {
  const HadamardTransform& transform = model_.hadamard;
  if (!transform.weights.contains(reader.tensor->name))
    return x;
  Value& known = transformed_[x];
  if (!known)
    known = create<cmf::HadamardOp>(x, number(transform.block), signs(x), UnitAttr(),
                                    transform.half ? builder_.getUnitAttr() : UnitAttr());
  return known;
}

Value GraphBuilder::untransformed(Value x) {
  return create<cmf::HadamardOp>(x, number(model_.hadamard.block), signs(x), builder_.getUnitAttr(),
                                 model_.hadamard.half ? builder_.getUnitAttr() : UnitAttr());
}

Value GraphBuilder::norm(Value x, const std::string& name, int64_t group) {
  Value factors = weight(name + ".weight");
  if (factors && model_.layerNorms && group == 0)
    return create<cmf::LayerNormOp>(x, factors, weight(name + ".bias"), real(model_.eps));
  return factors ? rmsNorm(x, factors, group) : x;
}

FloatAttr GraphBuilder::activationNumber(double value) {
  const bool has = model_.activation == cmf::Activation::situ || model_.activation == cmf::Activation::swigluoai;
  return has ? real(value) : FloatAttr();
}

Value GraphBuilder::gated(Value gate, Value up) {
  return create<cmf::GluOp>(gate, up, cmf::ActivationAttr::get(builder_.getContext(), model_.activation),
                            activationNumber(model_.activationAlpha), activationNumber(model_.activationLimit));
}

Value GraphBuilder::plainNorm(Value x, const std::string& name) {
  return create<cmf::RmsNormOp>(x, weight(name + ".weight"), real(model_.eps), UnitAttr(), IntegerAttr());
}

Value GraphBuilder::rmsNorm(Value x, Value factors, int64_t group) {
  return create<cmf::RmsNormOp>(x, factors, real(model_.eps),
                                factors && model_.unitOffsetNorms ? builder_.getUnitAttr() : UnitAttr(),
                                group != 0 ? number(group) : IntegerAttr());
}

} // namespace cortiq::compiler

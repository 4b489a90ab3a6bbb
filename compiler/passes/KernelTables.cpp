#include "compiler/passes/KernelTables.h"

#include <bit>

using namespace mlir;

namespace cortiq::compiler {

KernelTables::KernelTables(ModuleOp module) : builder_(OpBuilder::atBlockEnd(module.getBody())) {
  // Whatever the module has already (the function that is being lowered) keeps its name.
  for (auto symbol : module.getOps<SymbolOpInterface>())
    names_.insert(symbol.getName());
}

std::string KernelTables::freshName(StringRef wanted) {
  std::string name = wanted.str();
  for (unsigned n = 2; !names_.insert(name).second; ++n)
    name = (wanted + "." + Twine(n)).str();
  return name;
}

FlatSymbolRefAttr KernelTables::addWeight(cmf::WeightOp weight, StringRef codec, kernel::Layout layout, float add) {
  cmf::WeightType type = weight.getType();
  SmallVector<Attribute> parts;
  SmallVector<int64_t> skills;
  if (auto blend = blends_.find(weight); blend != blends_.end())
    for (auto [skill, part] : blend->second) {
      parts.push_back(type.isMatrix() ? matrix(part) : vector(part, add));
      skills.push_back(skill);
    }
  auto [entry, fresh] = weights_.try_emplace({weight, std::bit_cast<uint32_t>(add)});
  if (!fresh)
    return entry->second;
  StringRef fileCodec(type.getCodec().name.data(), type.getCodec().name.size());
  std::string name = freshName(weight.getName());
  auto table = builder_.create<kernel::WeightOp>(
      weight.getLoc(), builder_.getStringAttr(name), builder_.getStringAttr(codec),
      kernel::LayoutAttr::get(builder_.getContext(), layout), builder_.getI64IntegerAttr(type.getRows()),
      builder_.getI64IntegerAttr(type.getCols()), builder_.getF32FloatAttr(add),
      codec == fileCodec ? StringAttr() : builder_.getStringAttr(fileCodec), weight.getSourceAttr(),
      weight.getRowsAttr());
  if (!parts.empty())
    table->setAttr(kernel::kBlendAttr, builder_.getDictionaryAttr(
                                           {builder_.getNamedAttr("parts", builder_.getArrayAttr(parts)),
                                            builder_.getNamedAttr("skills", builder_.getDenseI64ArrayAttr(skills))}));
  return entry->second = FlatSymbolRefAttr::get(builder_.getContext(), name);
}

void KernelTables::setBlend(cmf::WeightOp weight, ArrayRef<std::pair<int64_t, cmf::WeightOp>> parts) {
  blends_[weight].assign(parts.begin(), parts.end());
}

FlatSymbolRefAttr KernelTables::matrix(cmf::WeightOp weight) {
  std::string_view codec = weight.getType().getCodec().name;
  return addWeight(weight, {codec.data(), codec.size()}, static_cast<kernel::Layout>(*weight.getLayout()), 0.0f);
}

FlatSymbolRefAttr KernelTables::vector(cmf::WeightOp weight, float add) {
  return addWeight(weight, "f32", kernel::Layout::verbatim, add);
}

FlatSymbolRefAttr KernelTables::rope(cmf::RopeAttr rope) {
  auto [entry, fresh] = ropes_.try_emplace(rope);
  if (!fresh)
    return entry->second;
  std::string name = freshName("rope" + std::to_string(ropes_.size() - 1));
  builder_.create<kernel::RopeTableOp>(
      builder_.getUnknownLoc(), builder_.getStringAttr(name), rope.getInverseFrequencies(),
      builder_.getF32FloatAttr(static_cast<float>(rope.getMagnitude().getValueAsDouble())));
  return entry->second = FlatSymbolRefAttr::get(builder_.getContext(), name);
}

FlatSymbolRefAttr KernelTables::cache(cmf::AttentionOp attention) {
  if (FlatSymbolRefAttr known = caches_.lookup(attention))
    return known;
  std::string name = freshName("kv" + std::to_string(attention.getLayer()));
  builder_.create<kernel::KvLayerOp>(
      attention.getLoc(), builder_.getStringAttr(name), builder_.getI64IntegerAttr(attention.getKvHeads()),
      builder_.getI64IntegerAttr(attention.getHeadDim()), builder_.getI64IntegerAttr(attention.getVDim()),
      builder_.getI64IntegerAttr(attention.getWindow().value_or(0)), attention.getRingAttr());
  return caches_[attention] = FlatSymbolRefAttr::get(builder_.getContext(), name);
}

FlatSymbolRefAttr KernelTables::state(const cmf::RecurrentState& state) {
  if (FlatSymbolRefAttr known = states_.lookup(state.number))
    return known;
  std::string name = freshName("state" + std::to_string(state.number));
  builder_.create<kernel::StateOp>(builder_.getUnknownLoc(), builder_.getStringAttr(name),
                                   builder_.getI64IntegerAttr(state.size));
  return states_[state.number] = FlatSymbolRefAttr::get(builder_.getContext(), name);
}

} // namespace cortiq::compiler

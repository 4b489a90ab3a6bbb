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
  auto [entry, fresh] = weights_.try_emplace({weight, std::bit_cast<uint32_t>(add)});
  if (!fresh)
    return entry->second;
  cmf::WeightType type = weight.getType();
  StringRef fileCodec(type.getCodec().name.data(), type.getCodec().name.size());
  std::string name = freshName(weight.getName());
  builder_.create<kernel::WeightOp>(weight.getLoc(), builder_.getStringAttr(name), builder_.getStringAttr(codec),
                                    kernel::LayoutAttr::get(builder_.getContext(), layout),
                                    builder_.getI64IntegerAttr(type.getRows()),
                                    builder_.getI64IntegerAttr(type.getCols()), builder_.getF32FloatAttr(add),
                                    codec == fileCodec ? StringAttr() : builder_.getStringAttr(fileCodec),
                                    weight.getSourceAttr(), weight.getRowsAttr());
  return entry->second = FlatSymbolRefAttr::get(builder_.getContext(), name);
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
  std::string name = freshName("kv" + std::to_string(attention.getLayer()));
  builder_.create<kernel::KvLayerOp>(
      attention.getLoc(), builder_.getStringAttr(name), builder_.getI64IntegerAttr(attention.getKvHeads()),
      builder_.getI64IntegerAttr(attention.getHeadDim()), builder_.getI64IntegerAttr(attention.getVDim()),
      builder_.getI64IntegerAttr(attention.getWindow().value_or(0)));
  return FlatSymbolRefAttr::get(builder_.getContext(), name);
}

FlatSymbolRefAttr KernelTables::state(const cmf::RecurrentState& state) {
  std::string name = freshName("state" + std::to_string(state.number));
  builder_.create<kernel::StateOp>(builder_.getUnknownLoc(), builder_.getStringAttr(name),
                                   builder_.getI64IntegerAttr(state.size));
  return FlatSymbolRefAttr::get(builder_.getContext(), name);
}

} // namespace cortiq::compiler

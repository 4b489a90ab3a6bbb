#include "compiler/emit/rows/paths.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace cortiq::compiler {

std::vector<std::unique_ptr<artifact::PathChoiceT>> pathRows(kernel::ProgramOp program, const ProgramNumbers& numbers) {
  llvm::MapVector<std::pair<Attribute, kernel::Form>, std::unique_ptr<artifact::PathChoiceT>> rows;
  llvm::DenseSet<std::pair<const void*, uint32_t>> known;
  auto add = [&](auto call) {
    auto path = call->template getAttrOfType<kernel::PathAttr>(kernel::kPathAttr);
    if (!path)
      return;
    std::unique_ptr<artifact::PathChoiceT>& row = rows[{path, call.getSpec().getAct()}];
    if (!row) {
      row = std::make_unique<artifact::PathChoiceT>();
      row->path = static_cast<uint8_t>(path.getPath());
      row->from_tokens = path.getFrom();
      row->act = call.getSpec().getAct() == kernel::Form::q8a ? artifact::BufferKind::Q8Act : artifact::BufferKind::F32;
      row->fused = path.getFused();
      row->materialised = path.getMaterialised();
      row->why = path.getWhy().str();
    }
    const uint32_t weight = numbers.weight(call.getWeight());
    if (known.insert({row.get(), weight}).second)
      row->weights.push_back(weight);
  };
  program.walk([&](kernel::CallOp call) { add(call); });
  program.walk([&](kernel::ExpertOp expert) { add(expert); });
  std::vector<std::unique_ptr<artifact::PathChoiceT>> out;
  for (auto& [key, row] : rows)
    out.push_back(std::move(row));
  return out;
}

} // namespace cortiq::compiler

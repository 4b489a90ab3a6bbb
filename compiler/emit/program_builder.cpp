#include "compiler/emit/program_builder.h"

#include "compiler/emit/rows/paths.h"
#include "compiler/emit/rows/rows.h"
#include "compiler/passes/KernelSpecs.h"
#include "dialects/CMF/IR/OverlayCatalog.h"
#include "formats/artifact/kernel_abi.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

const formats::Codec& codecOf(llvm::StringRef name) {
  return *formats::find_codec({name.data(), name.size()});
}

artifact::BufferKind kindOf(kernel::Form form) {
  switch (form) {
  case kernel::Form::f32:
    return artifact::BufferKind::F32;
  case kernel::Form::q8a:
    return artifact::BufferKind::Q8Act;
  case kernel::Form::i32:
    return artifact::BufferKind::I32;
  case kernel::Form::q8a_bf16:
    return artifact::BufferKind::Q8Bf16Act;
  }
  llvm_unreachable("every form is above");
}

class Builder {
public:
  explicit Builder(ModuleOp module) : module_(module), numbers_(module) {}

  artifact::ProgramT build(kernel::ProgramOp program) {
    artifact::ProgramT out;
    for (auto define : module_.getOps<kernel::DefineOp>())
      out.kernels.push_back(kernelRow(define));
    for (auto kv : module_.getOps<kernel::KvLayerOp>())
      out.kv_layers.push_back(kvRow(kv));
    for (auto rope : module_.getOps<kernel::RopeTableOp>())
      out.rope_tables.push_back(ropeRow(rope));
    for (auto state : module_.getOps<kernel::StateOp>())
      out.states.push_back(state.getElements());
    for (auto alloc : program.getBody().front().getOps<kernel::AllocOp>()) {
      numbers_.addSlot(alloc.getBuffer());
      out.buffers.push_back(bufferRow(alloc));
    }
    for (auto stage : program.getBody().front().getOps<kernel::StageOp>()) {
      auto row = std::make_unique<artifact::StageT>();
      row->head = stage.getHead();
      row->stream = stage.getStream();
      row->draft = stage.getDraft();
      row->name = stage.getName().str();
      for (Operation& op : stage.getBody().front())
        row->calls.push_back(isa<kernel::ChooseOp>(op) ? choiceRow(cast<kernel::ChooseOp>(op)) : callRow(&op));
      out.stages.push_back(std::move(row));
    }
    auto end = cast<kernel::ReturnOp>(program.getBody().front().back());
    out.logits = numbers_.slot(end.getLogits());
    out.draft_logits = numbers_.slot(end.getDraft());
    out.paths = pathRows(program, numbers_);
    out.arena_bytes_per_token = *program.getArenaBytesPerToken();
    return out;
  }

private:
  std::unique_ptr<artifact::CallT> callRow(Operation* op) {
    auto row = std::make_unique<artifact::CallT>();
    fillRow(op, numbers_, row->op);
    if (auto gate = op->getAttrOfType<IntegerAttr>(kernel::kGateAttr))
      row->gate = gate.getInt();
    if (auto mask = op->getAttrOfType<cmf::MaskAttr>(cmf::kMaskAttr)) {
      row->mask = std::make_unique<artifact::MaskBitsT>();
      row->mask->kind = static_cast<artifact::MaskKind>(mask.getKind());
      row->mask->layer = mask.getLayer();
      row->mask->first = mask.getFirst();
      row->mask->group = mask.getGroup();
    }
    return row;
  }

  std::unique_ptr<artifact::CallT> choiceRow(kernel::ChooseOp choose) {
    std::vector<std::unique_ptr<artifact::CallT>> alternatives;
    for (auto [region, skill] : llvm::zip_equal(choose.getAlternatives(), choose.getCases())) {
      alternatives.push_back(callRow(&region.front().front()));
      alternatives.back()->skill = skill < 0 ? ProgramNumbers::kNone : skill;
    }
    const bool idle = choose.getBase().empty() || choose.getBase().front().empty();
    auto row = callRow(idle ? &choose.getAlternatives()[0].front().front() : &choose.getBase().front().front());
    row->idle = idle;
    row->alternatives = std::move(alternatives);
    return row;
  }

  static std::unique_ptr<artifact::KernelT> kernelRow(kernel::DefineOp define) {
    kernel::SpecAttr spec = define.getSpec();
    auto row = std::make_unique<artifact::KernelT>();
    row->name = define.getSymName().str();
    row->tokens = spec.getTokens();
    row->rows = spec.getRows();
    row->k = spec.getK();
    row->codec = static_cast<uint16_t>(codecOf(spec.getCodec()).id);
    row->layout = static_cast<uint8_t>(spec.getLayout());
    row->act = kindOf(spec.getAct());
    row->bias = spec.getBias();
    row->residual = spec.getResidual();
    row->from_tokens = define.getFromTokens().value_or(0);
    return row;
  }

  static std::unique_ptr<artifact::KvLayerT> kvRow(kernel::KvLayerOp kv) {
    auto row = std::make_unique<artifact::KvLayerT>();
    row->kv_heads = kv.getKvHeads();
    row->k_dim = kv.getKDim();
    row->v_dim = kv.getVDim();
    row->window = kv.getWindow();
    row->ring = kv.getRing();
    return row;
  }

  static std::unique_ptr<artifact::RopeTableT> ropeRow(kernel::RopeTableOp rope) {
    auto row = std::make_unique<artifact::RopeTableT>();
    row->inverse_frequencies.assign(rope.getInverseFrequencies().begin(), rope.getInverseFrequencies().end());
    row->magnitude = toFloat(rope.getMagnitude());
    return row;
  }

  static std::unique_ptr<artifact::BufferT> bufferRow(kernel::AllocOp alloc) {
    auto type = cast<kernel::BufferType>(alloc.getBuffer().getType());
    auto row = std::make_unique<artifact::BufferT>();
    row->kind = kindOf(type.getForm());
    row->elements = type.getElements();
    row->bytes_per_token = type.bytesPerToken();
    row->offset_per_token = *alloc.getOffset();
    row->records = type.getRecords();
    return row;
  }

  ModuleOp module_;
  ProgramNumbers numbers_;
};

std::vector<std::unique_ptr<artifact::BlendPartT>> blendRows(DictionaryAttr blend, const ProgramNumbers& numbers) {
  std::vector<std::unique_ptr<artifact::BlendPartT>> rows;
  for (auto [symbol, skill] : llvm::zip_equal(blend.getAs<ArrayAttr>("parts").getAsRange<FlatSymbolRefAttr>(),
                                              blend.getAs<DenseI64ArrayAttr>("skills").asArrayRef())) {
    rows.push_back(std::make_unique<artifact::BlendPartT>());
    rows.back()->weight = numbers.weight(symbol.getValue());
    rows.back()->skill = skill < 0 ? ProgramNumbers::kNone : skill;
  }
  return rows;
}

} // namespace

StatusOr<artifact::ProgramT> buildProgram(ModuleOp module) {
  auto programs = module.getOps<kernel::ProgramOp>();
  if (programs.empty() || !(*programs.begin()).getArenaBytesPerToken())
    return internal_error("the module has no finished kernel.program");
  return Builder(module).build(*programs.begin());
}

StatusOr<std::vector<std::unique_ptr<artifact::WeightT>>> buildWeightTable(ModuleOp module) {
  std::vector<std::unique_ptr<artifact::WeightT>> table;
  const ProgramNumbers numbers(module);
  for (auto weight : module.getOps<kernel::WeightOp>()) {
    const formats::Codec& codec = codecOf(weight.getCodec());
    auto layout = static_cast<formats::LayoutId>(weight.getLayout());
    auto row = std::make_unique<artifact::WeightT>();
    CORTIQ_ASSIGN_OR_RETURN(row->bytes, formats::packed_bytes(codec, layout, weight.getRows(), weight.getCols()));
    row->name = weight.getSymName().str();
    row->codec = static_cast<uint16_t>(codec.id);
    row->layout = static_cast<uint8_t>(layout);
    row->rows = weight.getRows();
    row->cols = weight.getCols();
    if (auto blend = weight->getAttrOfType<DictionaryAttr>(kernel::kBlendAttr)) {
      row->bytes = 0;
      row->blend = blendRows(blend, numbers);
    }
    table.push_back(std::move(row));
  }
  return table;
}

} // namespace cortiq::compiler

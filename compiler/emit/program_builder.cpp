#include "compiler/emit/program_builder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include "formats/artifact/kernel_abi.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

constexpr uint32_t kNone = 0xFFFFFFFF; // the schema's word for "absent"

const formats::Codec& codecOf(llvm::StringRef name) {
  return *formats::find_codec({name.data(), name.size()});
}

artifact::BufferKind kindOf(kernel::Form form) {
  return form == kernel::Form::q8a ? artifact::BufferKind::Q8Act : artifact::BufferKind::F32;
}

float toFloat(const llvm::APFloat& value) {
  return value.convertToFloat();
}

class Builder {
public:
  explicit Builder(ModuleOp module) : module_(module) {
    number<kernel::WeightOp>(weights_);
    number<kernel::DefineOp>(kernels_);
    number<kernel::KvLayerOp>(caches_);
    number<kernel::RopeTableOp>(ropes_);
  }

  artifact::ProgramT build(kernel::ProgramOp program) {
    artifact::ProgramT out;
    for (auto define : module_.getOps<kernel::DefineOp>())
      out.kernels.push_back(kernelRow(define));
    for (auto kv : module_.getOps<kernel::KvLayerOp>())
      out.kv_layers.push_back(kvRow(kv));
    for (auto rope : module_.getOps<kernel::RopeTableOp>())
      out.rope_tables.push_back(ropeRow(rope));
    for (auto alloc : program.getBody().front().getOps<kernel::AllocOp>()) {
      slots_[alloc.getBuffer()] = out.buffers.size();
      out.buffers.push_back(bufferRow(alloc));
    }
    for (auto stage : program.getBody().front().getOps<kernel::StageOp>()) {
      auto row = std::make_unique<artifact::StageT>();
      row->head = stage.getHead();
      row->name = stage.getName().str();
      for (Operation& op : stage.getBody().front()) {
        row->calls.push_back(std::make_unique<artifact::CallT>());
        fill(row->calls.back()->op, &op);
      }
      out.stages.push_back(std::move(row));
    }
    out.logits = slot(cast<kernel::ReturnOp>(program.getBody().front().back()).getLogits());
    out.arena_bytes_per_token = *program.getArenaBytesPerToken();
    return out;
  }

private:
  using Numbers = llvm::StringMap<uint32_t>;

  template <class Op>
  void number(Numbers& numbers) {
    for (Op op : module_.getOps<Op>())
      numbers.try_emplace(op.getSymName(), numbers.size());
  }

  uint32_t slot(Value buffer) const { return buffer ? slots_.lookup(buffer) : kNone; }
  static uint32_t index(const Numbers& numbers, std::optional<llvm::StringRef> symbol) {
    return symbol ? numbers.lookup(*symbol) : kNone;
  }
  std::vector<uint32_t> kernelList(ArrayAttr symbols) const {
    std::vector<uint32_t> list;
    for (auto symbol : symbols.getAsRange<FlatSymbolRefAttr>())
      list.push_back(kernels_.lookup(symbol.getValue()));
    return list;
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
    return row;
  }

  static std::unique_ptr<artifact::KvLayerT> kvRow(kernel::KvLayerOp kv) {
    auto row = std::make_unique<artifact::KvLayerT>();
    row->kv_heads = kv.getKvHeads();
    row->k_dim = kv.getKDim();
    row->v_dim = kv.getVDim();
    row->window = kv.getWindow();
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
    return row;
  }

  void fill(artifact::OpUnion& out, Operation* op) {
    llvm::TypeSwitch<Operation*>(op)
        .Case<kernel::EmbedOp, kernel::NormOp, kernel::QuantizeOp, kernel::GluOp, kernel::MatmulOp,
              kernel::AttentionPrepOp, kernel::AttentionOp, kernel::LogitsOp, kernel::AddOp>(
            [&](auto typed) { out.Set(row(typed)); })
        .Default([](Operation*) { llvm_unreachable("the verifier lets only calls into a stage"); });
  }

  artifact::EmbedOpT row(kernel::EmbedOp op) {
    artifact::EmbedOpT r;
    r.weight = index(weights_, op.getWeight());
    r.out = slot(op.getOut());
    r.scale = toFloat(op.getScale());
    return r;
  }

  artifact::NormOpT row(kernel::NormOp op) {
    artifact::NormOpT r;
    r.input = slot(op.getInput());
    r.add = slot(op.getAdd());
    r.sum_out = slot(op.getSum());
    r.weight = index(weights_, op.getWeight());
    r.eps = toFloat(op.getEps());
    r.out = slot(op.getOut());
    r.act_out = slot(op.getAct());
    r.scale = toFloat(op.getScale());
    return r;
  }

  artifact::QuantizeOpT row(kernel::QuantizeOp op) {
    artifact::QuantizeOpT r;
    r.input = slot(op.getInput());
    r.act_out = slot(op.getAct());
    r.out = slot(op.getOut());
    r.column_scale = index(weights_, op.getColumnScale());
    return r;
  }

  artifact::GluOpT row(kernel::GluOp op) {
    artifact::GluOpT r;
    r.gate = slot(op.getGate());
    r.up = slot(op.getUp());
    r.activation = static_cast<artifact::Activation>(op.getActivation());
    r.out = slot(op.getOut());
    r.act_out = slot(op.getAct());
    return r;
  }

  artifact::MatmulOpT row(kernel::MatmulOp op) {
    artifact::MatmulOpT r;
    for (auto call : op.getBody().front().getOps<kernel::CallOp>()) {
      auto part = std::make_unique<artifact::MatmulPartT>();
      part->weight = index(weights_, call.getWeight());
      part->kernels = kernelList(*call.getKernels());
      part->tail_kernels = kernelList(*call.getTails());
      part->out = slot(call.getOut());
      part->bias = index(weights_, call.getBias());
      part->residual = slot(call.getResidual());
      part->input = slot(call.getInput());
      r.parts.push_back(std::move(part));
    }
    return r;
  }

  artifact::AttentionPrepOpT row(kernel::AttentionPrepOp op) {
    artifact::AttentionPrepOpT r;
    r.q = slot(op.getQ());
    r.k = slot(op.getK());
    r.v = slot(op.getV());
    r.layer = index(caches_, op.getCache());
    r.heads = op.getHeads();
    r.head_dim = op.getHeadDim();
    r.q_norm = index(weights_, op.getQNorm());
    r.k_norm = index(weights_, op.getKNorm());
    r.norm_eps = toFloat(op.getNormEps());
    r.norm_after_rope = op.getNormAfterRope();
    r.v_norm = op.getVNorm();
    r.rope = index(ropes_, op.getRope());
    return r;
  }

  artifact::AttentionOpT row(kernel::AttentionOp op) {
    artifact::AttentionOpT r;
    r.q = slot(op.getQ());
    r.layer = index(caches_, op.getCache());
    r.heads = op.getHeads();
    r.head_dim = op.getHeadDim();
    r.scale = toFloat(op.getScale());
    r.softcap = toFloat(op.getSoftcap());
    r.sinks = index(weights_, op.getSinks());
    r.out = slot(op.getOut());
    r.act_out = slot(op.getAct());
    return r;
  }

  artifact::LogitsOpT row(kernel::LogitsOp op) {
    artifact::LogitsOpT r;
    r.input = slot(op.getInput());
    r.multiplier = toFloat(op.getMultiplier());
    r.softcap = toFloat(op.getSoftcap());
    return r;
  }

  artifact::AddOpT row(kernel::AddOp op) {
    artifact::AddOpT r;
    r.a = slot(op.getA());
    r.b = slot(op.getB());
    r.out = slot(op.getOut());
    r.scale = toFloat(op.getScale());
    return r;
  }

  ModuleOp module_;
  Numbers weights_, kernels_, caches_, ropes_;
  llvm::DenseMap<Value, uint32_t> slots_;
};

} // namespace

StatusOr<artifact::ProgramT> buildProgram(ModuleOp module) {
  auto programs = module.getOps<kernel::ProgramOp>();
  if (programs.empty() || !(*programs.begin()).getArenaBytesPerToken())
    return internal_error("the module has no finished kernel.program");
  return Builder(module).build(*programs.begin());
}

StatusOr<std::vector<std::unique_ptr<artifact::WeightT>>> buildWeightTable(ModuleOp module) {
  std::vector<std::unique_ptr<artifact::WeightT>> table;
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
    table.push_back(std::move(row));
  }
  return table;
}

} // namespace cortiq::compiler

#include "tools/cortiq-compile/compile.h"

#include <charconv>
#include <filesystem>

#include "mlir/IR/Builders.h"

#include "codegen/kernels/kernel_spec.h"
#include "compiler/pipelines/Pipelines.h"
#include "compiler/target/target_attr.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/layout/layout.h"
#include "formats/mapped_file.h"
#include "tools/cortiq-compile/session.h"

namespace cortiq::tools {
namespace {

struct Problem {
  const formats::Codec* codec = nullptr;
  uint64_t rows = 0, cols = 0;
  formats::LayoutId layout = formats::LayoutId::kVerbatim;
  bool fast = false; ///< the kernel reads q8a
  bool column_scales = false;
};

StatusOr<uint64_t> read_size(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > UINT32_MAX)
    return invalid("--shape is ROWSxCOLS with sizes between 1 and 2^32 - 1, not '" + std::string(text) + "'");
  return value;
}

StatusOr<Problem> read_problem(const CompileOptions& o) {
  Problem p;
  p.codec = formats::find_cli_codec(o.gemv);
  if (!p.codec || p.codec->form == formats::DotForm::kNone)
    return invalid("there is no weight codec '" + o.gemv + "'; write family and scheme as in cmf:q4tp or gguf:Q4_K");
  const size_t x = o.shape.find('x');
  if (x == std::string::npos)
    return invalid("--shape is ROWSxCOLS, not '" + o.shape + "'");
  CORTIQ_ASSIGN_OR_RETURN(p.rows, read_size(std::string_view(o.shape).substr(0, x)));
  CORTIQ_ASSIGN_OR_RETURN(p.cols, read_size(std::string_view(o.shape).substr(x + 1)));
  const StatusOr<formats::R16Format> r16 = formats::r16_format(*p.codec, p.cols);
  if (o.layout == "r16" && !r16.ok())
    return r16.status().with_prefix("--layout r16");
  p.layout = o.layout != "verbatim" && r16.ok() ? formats::LayoutId::kR16 : formats::LayoutId::kVerbatim;
  p.fast = o.numerics == "fast" && codegen::fast_arm(*p.codec, p.layout) == codegen::Arm::kFast;
  p.column_scales = p.codec->id == formats::CodecId::kQ82F;
  return p;
}

// x -> [quantize] -> matmul -> y, in the kernel dialect.
mlir::OwningOpRef<mlir::ModuleOp> build_module(mlir::MLIRContext& context, const Problem& p,
                                               const compiler::Target& target, const CompileOptions& o,
                                               uint64_t payload_bytes) {
  context.loadDialect<cmf::CMFDialect, kernel::KernelDialect>();
  mlir::OpBuilder b(&context);
  const mlir::Location loc = b.getUnknownLoc();
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
  (*module)->setAttr(cmf::kTargetAttr, compiler::targetAttr(&context, target));
  (*module)->setAttr(cmf::kNumericsAttr, b.getStringAttr(o.numerics));
  (*module)->setAttr(cmf::kModelAttr, b.getDictionaryAttr({
                                          b.getNamedAttr("architecture", b.getStringAttr("kernel")),
                                          b.getNamedAttr("hidden", b.getI64IntegerAttr(p.cols)),
                                          b.getNamedAttr("layers", b.getI64IntegerAttr(0)),
                                          b.getNamedAttr("trained_context", b.getI64IntegerAttr(1)),
                                          b.getNamedAttr("vocab", b.getI64IntegerAttr(p.rows)),
                                      }));
  b.setInsertionPointToEnd(module->getBody());
  const llvm::StringRef codec(p.codec->name.data(), p.codec->name.size());
  const auto layout = static_cast<kernel::Layout>(p.layout);
  b.create<kernel::WeightOp>(loc, b.getStringAttr("weight"), b.getStringAttr(codec),
                             kernel::LayoutAttr::get(&context, layout), b.getI64IntegerAttr(p.rows),
                             b.getI64IntegerAttr(p.cols), b.getF32FloatAttr(0), mlir::StringAttr(),
                             cmf::SourceAttr::get(&context, 0, 0, payload_bytes), mlir::Attribute());
  const auto weight = mlir::FlatSymbolRefAttr::get(&context, "weight");
  auto program = b.create<kernel::ProgramOp>(loc, b.getStringAttr("program"), mlir::IntegerAttr());
  b.createBlock(&program.getBody());
  auto alloc = [&](kernel::Form form, uint64_t elements, bool input) {
    return b
        .create<kernel::AllocOp>(loc, kernel::BufferType::get(&context, form, elements), mlir::IntegerAttr(),
                                 input ? b.getUnitAttr() : mlir::UnitAttr())
        .getBuffer();
  };
  auto stage = [&](const char* name, auto body) {
    mlir::OpBuilder::InsertionGuard guard(b);
    auto op = b.create<kernel::StageOp>(loc, b.getStringAttr(name), mlir::UnitAttr());
    b.createBlock(&op.getBody());
    body();
  };
  const kernel::Form form = p.fast ? kernel::Form::q8a : kernel::Form::f32;
  mlir::Value x = alloc(kernel::Form::f32, p.cols, true);
  mlir::Value act = p.fast || p.column_scales ? alloc(form, p.cols, false) : x;
  mlir::Value y = alloc(kernel::Form::f32, p.rows, false);
  if (act != x)
    stage("quantize", [&] {
      b.create<kernel::QuantizeOp>(loc, x, p.column_scales ? weight : mlir::FlatSymbolRefAttr(),
                                   p.fast ? mlir::Value() : act, p.fast ? act : mlir::Value());
    });
  stage("matmul", [&] {
    auto matmul = b.create<kernel::MatmulOp>(loc);
    b.createBlock(&matmul.getBody());
    auto spec =
        kernel::SpecAttr::get(&context, codec, layout, p.cols, 0, 0, form, std::string(target.name), false, false);
    b.create<kernel::CallOp>(loc, weight, act, mlir::FlatSymbolRefAttr(), mlir::Value(), y, spec, mlir::ArrayAttr(),
                             mlir::ArrayAttr());
  });
  b.create<kernel::ReturnOp>(loc, y);
  return module;
}

} // namespace

Status compile_kernel(const CompileOptions& options) {
  CompileSession session(options);
  CORTIQ_ASSIGN_OR_RETURN(const compiler::Target target, session.target());
  CORTIQ_ASSIGN_OR_RETURN(const Problem problem, read_problem(options));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile payload, formats::MappedFile::open(options.weights));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t expected,
                          problem.codec->payload_bytes(*problem.codec, problem.rows, problem.cols));
  if (problem.codec->variable_size)
    CORTIQ_RETURN_IF_ERROR(
        formats::check_payload(*problem.codec, payload.bytes(), problem.rows, problem.cols, /*strict=*/false)
            .with_prefix(options.weights));
  else if (payload.bytes().size() != expected)
    return invalid(options.weights + " has " + std::to_string(payload.bytes().size()) + " bytes, " + options.gemv +
                   " of shape " + options.shape + " needs " + std::to_string(expected));
  auto module = build_module(session.context(), problem, target, options, payload.bytes().size());
  CORTIQ_RETURN_IF_ERROR(session.run_passes(*module, compiler::buildProgramFinish));
  if (options.emit == EmitKind::kKernel || options.emit == EmitKind::kCmf)
    return session.write_ir(*module);
  CORTIQ_ASSIGN_OR_RETURN(auto emitter, compiler::makeKernelEmitter(target.name));
  if (options.emit != EmitKind::kArtifact)
    return session.write_kernels(*module, *emitter);
  compiler::ArtifactFacts facts;
  facts.maxContext = options.max_batch;
  facts.maxBatch = options.max_batch;
  facts.options = shaping_options(options);
  facts.sourceName = std::filesystem::path(options.weights).filename().string();
  const formats::Hash256 hash = formats::hash256(payload.bytes());
  facts.sourceHash.assign(hash.begin(), hash.end());
  return session.write_artifact(*module, *emitter, [&](uint32_t) { return payload.bytes(); }, std::move(facts));
}

} // namespace cortiq::tools

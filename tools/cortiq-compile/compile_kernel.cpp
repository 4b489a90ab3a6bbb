#include "tools/cortiq-compile/compile.h"

#include <charconv>
#include <filesystem>

#include "mlir/IR/Builders.h"

#include "codegen/kernels/kernel_spec.h"
#include "compiler/pipelines/Pipelines.h"
#include "compiler/target/target_attr.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/codec/low_rank.h"
#include "formats/layout/layout.h"
#include "formats/mapped_file.h"
#include "tools/cortiq-compile/session.h"

namespace cortiq::tools {
namespace {

struct Problem {
  const formats::Codec* codec = nullptr;
  uint64_t rows = 0, cols = 0;
  formats::LayoutId layout = formats::LayoutId::kVerbatim;
};

/// One matrix of the problem: the whole, or a factor of a low-rank payload.
struct Matrix {
  const formats::Codec* codec;
  uint64_t rows, cols;
  formats::LayoutId layout;
  std::string name;
  cmf::SourceAttr source;
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
  return p;
}

/// Writes the program x -> y in the kernel dialect, stage by stage.
class ProgramWriter {
public:
  ProgramWriter(mlir::OpBuilder& builder, const compiler::Target& target, bool fast)
      : b_(builder), loc_(builder.getUnknownLoc()), isa_(target.name), fast_(fast) {}

  /// Declares a matrix; comes before the program.
  void declare(const Matrix& m) {
    b_.create<kernel::WeightOp>(loc_, b_.getStringAttr(m.name), b_.getStringAttr(word(m)),
                                kernel::LayoutAttr::get(b_.getContext(), static_cast<kernel::Layout>(m.layout)),
                                b_.getI64IntegerAttr(m.rows), b_.getI64IntegerAttr(m.cols), b_.getF32FloatAttr(0),
                                mlir::StringAttr(), m.source, mlir::Attribute());
  }

  /// A buffer, in front of all stages.
  mlir::Value alloc(kernel::Form form, uint64_t elements, bool input = false) {
    mlir::OpBuilder::InsertionGuard guard(b_);
    if (last_alloc_)
      b_.setInsertionPointAfter(last_alloc_);
    last_alloc_ = b_.create<kernel::AllocOp>(loc_, kernel::BufferType::get(b_.getContext(), form, elements),
                                             mlir::IntegerAttr(), input ? b_.getUnitAttr() : mlir::UnitAttr());
    return last_alloc_.getBuffer();
  }

  /// y = m x [+ residual], x in floats; in one stage or two.
  mlir::Value multiply(const Matrix& m, mlir::Value x, mlir::Value residual = {}) {
    const auto weight = mlir::FlatSymbolRefAttr::get(b_.getContext(), m.name);
    const bool q8a = fast_ && codegen::fast_arm(*m.codec, m.layout) == codegen::Arm::kFast;
    const kernel::Form form = q8a ? kernel::Form::q8a : kernel::Form::f32;
    mlir::Value act = x;
    if (q8a || m.codec->column_scales) {
      act = alloc(form, m.cols);
      stage("quantize", [&] {
        b_.create<kernel::QuantizeOp>(loc_, x, m.codec->column_scales ? weight : mlir::FlatSymbolRefAttr(),
                                      q8a ? mlir::Value() : act, q8a ? act : mlir::Value());
      });
    }
    mlir::Value y = alloc(kernel::Form::f32, m.rows);
    stage("matmul", [&] {
      auto matmul = b_.create<kernel::MatmulOp>(loc_);
      b_.createBlock(&matmul.getBody());
      auto spec = kernel::SpecAttr::get(b_.getContext(), word(m), static_cast<kernel::Layout>(m.layout), m.cols, 0, 0,
                                        form, isa_, false, static_cast<bool>(residual));
      b_.create<kernel::CallOp>(loc_, weight, act, mlir::FlatSymbolRefAttr(), residual, y, spec, mlir::ArrayAttr(),
                                mlir::ArrayAttr(), b_.getI64IntegerAttr(0), b_.getI64IntegerAttr(0));
    });
    return y;
  }

private:
  static llvm::StringRef word(const Matrix& m) { return {m.codec->name.data(), m.codec->name.size()}; }

  template <class Body>
  void stage(const char* name, Body body) {
    mlir::OpBuilder::InsertionGuard guard(b_);
    auto op =
        b_.create<kernel::StageOp>(loc_, b_.getStringAttr(name), mlir::UnitAttr(), mlir::UnitAttr(), mlir::UnitAttr());
    b_.createBlock(&op.getBody());
    body();
  }

  mlir::OpBuilder& b_;
  mlir::Location loc_;
  std::string isa_;
  bool fast_;
  kernel::AllocOp last_alloc_;
};

/// The factors of a blr payload, v and u of each path in turn.
StatusOr<std::vector<Matrix>> low_rank_matrices(mlir::MLIRContext& context, std::span<const uint8_t> payload) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::LowRankShape shape, formats::read_low_rank(payload));
  std::vector<Matrix> out;
  for (uint64_t path = 1; path <= shape.paths; ++path) {
    const std::string number = std::to_string(path);
    const auto low_rank = cmf::LowRankAttr::get(&context, shape.paths, shape.rank, path);
    const auto source = cmf::SourceAttr::get(&context, 0, 0, payload.size(), low_rank);
    out.push_back({&formats::codec_info(formats::CodecId::kBLRV), shape.rank, shape.cols, formats::LayoutId::kR16,
                   "weight_v" + number, source});
    out.push_back({&formats::codec_info(formats::CodecId::kBLRU), shape.rows, shape.rank, formats::LayoutId::kR16,
                   "weight_u" + number, source});
  }
  return out;
}

StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> build_module(mlir::MLIRContext& context, const Problem& p,
                                                         const compiler::Target& target, const CompileOptions& o,
                                                         std::span<const uint8_t> payload) {
  context.loadDialect<cmf::CMFDialect, kernel::KernelDialect>();
  const bool low_rank = p.codec->id == formats::CodecId::kBLR;
  std::vector<Matrix> matrices;
  if (low_rank) {
    CORTIQ_ASSIGN_OR_RETURN(matrices, low_rank_matrices(context, payload));
  } else {
    matrices.push_back(
        {p.codec, p.rows, p.cols, p.layout, "weight", cmf::SourceAttr::get(&context, 0, 0, payload.size())});
  }
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
  ProgramWriter writer(b, target, o.numerics == "fast");
  for (const Matrix& matrix : matrices)
    writer.declare(matrix);
  auto program = b.create<kernel::ProgramOp>(loc, b.getStringAttr("program"), mlir::IntegerAttr());
  b.createBlock(&program.getBody());
  mlir::Value x = writer.alloc(kernel::Form::f32, p.cols, /*input=*/true);
  mlir::Value y;
  if (low_rank)
    for (size_t i = 0; i < matrices.size(); i += 2)
      y = writer.multiply(matrices[i + 1], writer.multiply(matrices[i], x), y);
  else
    y = writer.multiply(matrices[0], x);
  b.create<kernel::ReturnOp>(loc, y, mlir::Value());
  return module;
}

} // namespace

Status compile_kernel(const CompileOptions& options) {
  CompileSession session(options);
  CORTIQ_ASSIGN_OR_RETURN(const compiler::Target target, session.only_target("--gemv"));
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
  CORTIQ_ASSIGN_OR_RETURN(auto module, build_module(session.context(), problem, target, options, payload.bytes()));
  CORTIQ_RETURN_IF_ERROR(session.run_passes(*module, [&](mlir::OpPassManager& passes) {
    compiler::buildProgramFinish(passes,
                                 {.path = options.path, .room = options.path_memory, .bf16 = options.half_prompts});
  }));
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
  facts.sources.push_back({facts.sourceName, payload.bytes().size(), facts.sourceHash});
  const compiler::TargetProgram program{*module, emitter.get()};
  return session.write_artifact({&program, 1}, [&](uint32_t) { return payload.bytes(); }, std::move(facts));
}

} // namespace cortiq::tools

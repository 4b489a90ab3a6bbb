// The frame of every matrix kernel on the 16-row layout:
//
//   for each row group of the call:
//     sums[t][v] = core(group, activations)
//     out[t] = sums [+ bias] [+ residual]          the epilogue
//
// Registers: `group`, `out`, `residual` and `bias` advance by one row group an iteration.

#include "codegen/kernels/build_kernel.h"

#include "mlir/IR/Verifier.h"

#include "codegen/kernels/core.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

using formats::KernelArgs;

namespace {

/// out[t][rows of v] = sums [+ bias] [+ residual], lanes beyond the group's rows untouched.
void epilogue(CoreContext& c, const Sums& sums, Value out, Value out_stride, Value residual, Value residual_stride,
              Value bias) {
  Emit& e = c.e;
  for (unsigned t = 0; t < c.spec.tokens; ++t) {
    Value out_t = t ? e.offset(out, out_stride, t) : out;
    Value residual_t = residual && t ? e.offset(residual, residual_stride, t) : residual;
    for (unsigned v = 0; v < c.vectors; ++v) {
      const int64_t disp = int64_t(v) * e.vector_bytes();
      const unsigned lanes = std::min(c.spec.rows - v * e.lanes(), e.lanes());
      Value y = sums[t * c.vectors + v];
      if (bias)
        y = e.add(y, e.load(e.f32(), {bias, disp}, lanes));
      if (residual)
        y = e.add(y, e.load(e.f32(), {residual_t, disp}, lanes));
      e.store(y, {out_t, disp}, lanes);
    }
  }
}

void build_body(Emit& e, Value args, const KernelSpec& spec, const formats::R16Format& format) {
  std::unique_ptr<Decoder> decoder = make_decoder(e, spec, format);
  CoreContext c{e, spec, *decoder, decoder->geometry(), format, (spec.rows + e.lanes() - 1) / e.lanes(), {}, {}};

  Value weights = e.load_ptr(args, offsetof(KernelArgs, weights));
  Value act = e.load_ptr(args, offsetof(KernelArgs, act));
  Value act_stride = spec.tokens > 1 ? e.load_index(args, offsetof(KernelArgs, act_stride)) : Value();
  for (unsigned t = 0; t < spec.tokens; ++t)
    c.tokens.push_back(t ? e.offset(act, act_stride, t) : act);
  Value scratch = e.load_ptr(args, offsetof(KernelArgs, scratch));
  c.scratch = {scratch, Decoder::kLadderBytes};
  Value out_stride = spec.tokens > 1 ? e.load_index(args, offsetof(KernelArgs, out_stride)) : Value();
  Value residual_stride =
      spec.tokens > 1 && spec.residual ? e.load_index(args, offsetof(KernelArgs, residual_stride)) : Value();

  std::vector<Value> carried = {weights, e.load_ptr(args, offsetof(KernelArgs, out))};
  if (spec.residual)
    carried.push_back(e.load_ptr(args, offsetof(KernelArgs, residual)));
  if (spec.bias)
    carried.push_back(e.load_ptr(args, offsetof(KernelArgs, bias)));

  const int64_t group_bytes = int64_t(spec.rows) * int64_t(format.row_bytes());
  const int64_t out_bytes = int64_t(spec.rows) * 4;
  Value groups = e.load_index(args, offsetof(KernelArgs, groups));
  e.loop(e.index(0), groups, 1, carried, [&](Value, const std::vector<Value>& in) {
    Address group{in[0], 0};
    decoder->begin_group(group, {scratch, 0}, c.vectors);
    Sums sums = spec.arm == Arm::kFast ? fast_core(c, group) : exact_core(c, group);
    Value residual = spec.residual ? in[2] : Value();
    Value bias = spec.bias ? in.back() : Value();
    epilogue(c, sums, in[1], out_stride, residual, residual_stride, bias);
    std::vector<Value> next = {e.offset(in[0], group_bytes)};
    for (size_t i = 1; i < in.size(); ++i)
      next.push_back(e.offset(in[i], out_bytes));
    return next;
  });
}

} // namespace

Status can_build(const KernelSpec& spec) {
  const formats::Codec& codec = formats::codec_info(spec.codec);
  if (!has_decoder(spec.codec))
    return unsupported("no kernel decoder for codec " + std::string(codec.name));
  if (spec.layout != formats::LayoutId::kR16)
    return unsupported("no kernel reads " + std::string(codec.name) + " in verbatim layout");
  if (spec.rows == 0 || spec.rows > formats::kRowGroup || spec.tokens == 0 || spec.k == 0)
    return internal_error("kernel spec out of range: " + kernel_name(spec));
  if (spec.arm == Arm::kFast && fast_arm(codec, spec.layout) != Arm::kFast)
    return internal_error("codec " + std::string(codec.name) + " has no integer form: " + kernel_name(spec));
  return formats::r16_format(codec, spec.k).status();
}

StatusOr<mlir::OwningOpRef<vec::KernelOp>> build_kernel(mlir::MLIRContext& context, const KernelSpec& spec,
                                                        unsigned lanes) {
  CORTIQ_RETURN_IF_ERROR(can_build(spec));
  CORTIQ_ASSIGN_OR_RETURN(formats::R16Format format, formats::r16_format(formats::codec_info(spec.codec), spec.k));
  context.loadDialect<vec::VecDialect>();
  mlir::OpBuilder builder(&context);
  const std::string name = kernel_name(spec);
  mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr(name));
  mlir::OwningOpRef<vec::KernelOp> kernel = builder.create<vec::KernelOp>(loc, name, spec.isa);
  mlir::Block& block = kernel->getBlock();
  // Before the terminator, where there is one.
  if (block.empty() || !block.back().hasTrait<mlir::OpTrait::IsTerminator>())
    mlir::OpBuilder::atBlockEnd(&block).create<vec::ReturnOp>(loc);
  builder.setInsertionPoint(block.getTerminator());
  Emit emit(builder, loc, &block, lanes);
  build_body(emit, kernel->getArgs(), spec, format);
  if (mlir::failed(mlir::verify(kernel->getOperation())))
    return internal_error("the kernel does not verify: " + name);
  return kernel;
}

} // namespace cortiq::codegen

// The frame of every matrix kernel:
//
//   for each row group of the call:
//     sums[t][v] = core(group, activations)
//     out[t] = sums [+ bias] [+ residual]          the epilogue
//
// Registers: `group`, `out`, `residual` and `bias` advance by one row group an iteration.

#include "codegen/kernels/build_kernel.h"

#include <optional>

#include "mlir/IR/Verifier.h"

#include "codegen/kernels/bf16_core.h"
#include "codegen/kernels/core.h"
#include "codegen/kernels/flat_core.h"
#include "codegen/kernels/overlay.h"
#include "codegen/kernels/pair_core.h"
#include "codegen/kernels/panel_core.h"
#include "codegen/kernels/tile_core.h"
#include "codegen/kernels/vbit_core.h"
#include "codegen/kernels/wide_core.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

using formats::KernelArgs;

namespace {

/// Everything that the frame of a kernel holds over its row groups.
struct Frame {
  Emit& e;
  const KernelSpec& spec;
  unsigned vectors;
  std::vector<Value> tokens;
  Value out_stride, residual_stride;
};

Frame make_frame(Emit& e, Value args, const KernelSpec& spec) {
  const bool many = spec.tokens > 1;
  Frame f{e, spec, (spec.rows + e.lanes() - 1) / e.lanes(), {}, {}, {}};
  Value act = e.load_ptr(args, offsetof(KernelArgs, act));
  Value act_stride = many ? e.load_index(args, offsetof(KernelArgs, act_stride)) : Value();
  // Kernels for many tokens walk them themselves.
  for (unsigned t = 0; t < (takes_many(spec) ? 1 : spec.tokens); ++t)
    f.tokens.push_back(t ? e.offset(act, act_stride, t) : act);
  if (many)
    f.out_stride = e.load_index(args, offsetof(KernelArgs, out_stride));
  if (many && spec.residual)
    f.residual_stride = e.load_index(args, offsetof(KernelArgs, residual_stride));
  return f;
}

/// out[t][rows of v] = sums [+ bias] [+ residual], lanes beyond the group's rows untouched.
void epilogue(const Frame& f, const Sums& sums, Value out, Value residual, Value bias) {
  Emit& e = f.e;
  for (unsigned t = 0; t < f.spec.tokens; ++t) {
    Value out_t = t ? e.offset(out, f.out_stride, t) : out;
    Value residual_t = residual && t ? e.offset(residual, f.residual_stride, t) : residual;
    for (unsigned v = 0; v < f.vectors; ++v) {
      const int64_t disp = int64_t(v) * e.vector_bytes();
      const unsigned lanes = std::min(f.spec.rows - v * e.lanes(), e.lanes());
      Value y = sums[t * f.vectors + v];
      if (bias)
        y = e.add(y, e.load(e.f32(), {bias, disp}, lanes));
      if (residual)
        y = e.add(y, e.load(e.f32(), {residual_t, disp}, lanes));
      e.store(y, {out_t, disp}, lanes);
    }
  }
}

/// The loop over row groups. `body` gets where the group's results go and the group's own carried values, and returns
/// the next of those.
using Output = SumsCore::Output;
void over_outputs(const Frame& f, Value args, const std::vector<Value>& own,
                  const std::function<std::vector<Value>(const Output&, const std::vector<Value>&)>& body) {
  Emit& e = f.e;
  std::vector<Value> carried = {e.load_ptr(args, offsetof(KernelArgs, out))};
  if (f.spec.residual)
    carried.push_back(e.load_ptr(args, offsetof(KernelArgs, residual)));
  if (f.spec.bias)
    carried.push_back(e.load_ptr(args, offsetof(KernelArgs, bias)));
  const size_t pointers = carried.size();
  carried.insert(carried.end(), own.begin(), own.end());
  Value groups = e.load_index(args, offsetof(KernelArgs, groups));
  e.loop(e.index(0), groups, 1, carried, [&](Value, const std::vector<Value>& in) {
    const Output output{in[0], f.spec.residual ? in[1] : Value(), f.spec.bias ? in[pointers - 1] : Value()};
    const std::vector<Value> next_own = body(output, {in.begin() + pointers, in.end()});
    std::vector<Value> next;
    for (size_t i = 0; i < pointers; ++i)
      next.push_back(e.offset(in[i], int64_t(f.spec.rows) * 4));
    next.insert(next.end(), next_own.begin(), next_own.end());
    return next;
  });
}

/// The same for cores that return a group's sums, with the epilogue.
void over_groups(const Frame& f, Value args, const std::vector<Value>& own,
                 const std::function<std::pair<Sums, std::vector<Value>>(const std::vector<Value>&)>& core) {
  over_outputs(f, args, own, [&](const Output& output, const std::vector<Value>& in) {
    auto [sums, next] = core(in);
    epilogue(f, sums, output.out, output.residual, output.bias);
    return next;
  });
}

/// How far ahead of its records a kernel asks memory for weights. A core's window of instructions holds about a
/// microsecond's tenth of them: where a byte of weights costs much arithmetic, that is too few bytes for the latency of
/// memory, and the processor's own prefetchers stop at each page and fall behind. Verbatim rows are left to them.
int64_t prefetch_distance(const KernelSpec& spec) {
  constexpr int64_t kDistance = 6144;
  return spec.rows == formats::kRowGroup ? kDistance : 0;
}

/// Where the overlay's scratch starts: behind the decoder's ladder and the core's sums.
constexpr int64_t kOverlayScratch = int64_t(formats::kKernelScratchBytes) - Overlay::kScratchBytes;

/// Arranges the only token's codes in scratch as the decoder has levels cheapest, once a call, where it has such an
/// order and there is room.
void turn_codes(CoreContext& c, Value scratch) {
  constexpr uint64_t kGroup = 32, kAtOnce = 64;
  const std::vector<uint8_t> order = c.decoder.turned_order();
  if (order.empty() || c.spec.arm != Arm::kFast || c.spec.tokens != 1 || c.spec.k % kAtOnce ||
      c.spec.k > formats::kKernelScratchBytes)
    return;
  std::vector<uint8_t> from = order;
  for (uint8_t code : order)
    from.push_back(uint8_t(code + kGroup));
  Emit& e = c.e;
  e.loop(e.index(0), e.index(int64_t(c.spec.k)), kAtOnce, {}, [&](Value at, const std::vector<Value>&) {
    Value codes = e.load(e.i8(), {e.offset(c.tokens[0], at, 1), 0});
    e.store(e.lookup64(codes, e.bytes(from)), {e.offset(scratch, at, 1), 0});
    return std::vector<Value>();
  });
  c.turned = scratch;
  c.decoder.take_turned();
}

/// The core on the target's matrix instructions that serves the spec, if any.
std::unique_ptr<SumsCore> sums_core(CoreContext& c, Value args, const VectorUnit& unit, Value scratch) {
  if (c.spec.arm == Arm::kBf16)
    return std::make_unique<Bf16Core>(c, args, scratch);
  if (!takes_many(c.spec) || !has_tile_kernel(c.spec))
    return nullptr;
  if (unit.tiles)
    return std::make_unique<TileCore>(c, args, scratch);
  return unit.row_pairs ? std::make_unique<PairCore>(c, args, scratch) : nullptr;
}

void build_r16(const Frame& f, Value args, const VectorUnit& unit, const formats::R16Format& format) {
  Emit& e = f.e;
  std::unique_ptr<Decoder> decoder = make_decoder(e, f.spec, format);
  if (format.tensor_bytes > 0)
    decoder->set_tensor(e.load_ptr(args, offsetof(KernelArgs, tensor)));
  Value scratch = e.load_ptr(args, offsetof(KernelArgs, scratch));
  CoreContext c{e,         f.spec,           *decoder, decoder->geometry(),
                format,    f.vectors,        f.tokens, {scratch, Decoder::kLadderBytes},
                unit.dot4, unit.signed_dot4, 0};
  const int64_t ahead = unit.prefetch ? prefetch_distance(f.spec) : 0;
  const int64_t group_bytes = int64_t(f.spec.rows) * int64_t(format.row_bytes());
  // A larger tile than the registers hold walks the group, which is in L1 by then, once for each part of its tokens.
  const size_t at_once = tokens_at_once(e);
  std::vector<Value> own = {e.load_ptr(args, offsetof(KernelArgs, weights))};
  // Nothing asked for the first group: it may be far from where the last call ended.
  constexpr int64_t kLine = 64, kLines = 4;
  if (const int64_t first = std::min(ahead, group_bytes) / (kLine * kLines) * (kLine * kLines))
    e.loop(e.index(0), e.index(first), kLine * kLines, {}, [&](Value at, const std::vector<Value>&) {
      for (int64_t line = 0; line < kLines; ++line)
        e.prefetch({e.offset(own[0], at, 1), line * kLine});
      return std::vector<Value>();
    });
  if (std::unique_ptr<SumsCore> core = sums_core(c, args, unit, scratch)) {
    core->begin_call();
    c.ahead = ahead;
    core->run(own[0], group_bytes);
    own.push_back(core->first_sums());
    over_outputs(f, args, own, [&](const Output& output, const std::vector<Value>& in) {
      core->epilogue({in[0], 0}, in[1], output);
      return std::vector<Value>{e.offset(in[0], group_bytes), core->next_sums(in[1])};
    });
    core->end_call();
    return;
  }
  if (takes_many(f.spec)) {
    PanelCore core(c, args, scratch);
    over_outputs(f, args, own, [&](const Output& output, const std::vector<Value>& in) {
      c.ahead = ahead;
      decoder->begin_group({in[0], 0}, {scratch, 0}, c.vectors);
      core.run({in[0], 0}, output);
      return std::vector<Value>{e.offset(in[0], group_bytes)};
    });
    return;
  }
  turn_codes(c, scratch);
  if (f.spec.arm == Arm::kFast && f.spec.tokens == 1) {
    const int64_t used = std::max(Decoder::kLadderBytes, c.turned ? int64_t(f.spec.k) : 0);
    make_starts(c, {scratch, used}, kOverlayScratch - used);
  }
  std::optional<Overlay> overlay;
  if (has_overlay(f.spec.codec)) {
    overlay.emplace(e, f.spec, format, f.vectors, args, Address{scratch, kOverlayScratch});
    own.insert(own.end(), overlay->carried().begin(), overlay->carried().end());
  }
  over_groups(f, args, own, [&](const std::vector<Value>& in) {
    Address group{in[0], 0};
    decoder->begin_group(group, {scratch, 0}, c.vectors);
    std::vector<Value> next = {e.offset(in[0], group_bytes)};
    if (overlay)
      for (Value carried : overlay->begin_group({in.begin() + 1, in.end()}))
        next.push_back(carried);
    Sums sums;
    for (size_t first = 0; first < f.tokens.size(); first += at_once) {
      c.ahead = first == 0 ? ahead : 0; // later parts find the group in L1
      c.tokens.assign(f.tokens.begin() + first, f.tokens.begin() + std::min(first + at_once, f.tokens.size()));
      Sums some = f.spec.arm == Arm::kFast   ? fast_core(c, group)
                  : f.spec.arm == Arm::kWide ? wide_core(c, group)
                                             : exact_core(c, group);
      if (overlay)
        some = overlay->correct(c, group, std::move(some));
      sums.insert(sums.end(), some.begin(), some.end());
    }
    return std::pair(std::move(sums), std::move(next));
  });
}

void build_vbit(const Frame& f, Value args) {
  VBitCore core(f.e, f.spec, f.vectors);
  Address scratch{f.e.load_ptr(args, offsetof(KernelArgs, scratch)), 0};
  over_groups(f, args, core.begin_call(args, scratch), [&](const std::vector<Value>& carried) {
    VBitCore::Result result = core.run(f.tokens, carried);
    return std::pair(std::move(result.sums), std::move(result.next));
  });
}

void build_flat(const Frame& f, Value args) {
  FlatCore core(f.e, f.spec, args);
  over_groups(f, args, core.first_numbers(args), [&](const std::vector<Value>& flat) {
    return std::pair(core.run(f.tokens, flat), core.next_group(flat));
  });
}

/// The cores for payloads as they stand in the file.
struct VerbatimRow {
  formats::CodecId codec;
  void (*build)(const Frame& f, Value args);
  uint64_t multiple; ///< of which rows have to be
};
constexpr VerbatimRow kVerbatim[] = {
    {formats::CodecId::kQ4Block, build_flat, 1},
    {formats::CodecId::kVBit, build_vbit, 32},
    {formats::CodecId::kVBitRO, build_vbit, 32},
};

const VerbatimRow* find_verbatim(formats::CodecId codec) {
  for (const VerbatimRow& row : kVerbatim)
    if (row.codec == codec)
      return &row;
  return nullptr;
}

} // namespace

Status can_build(const KernelSpec& spec) {
  const formats::Codec& codec = formats::codec_info(spec.codec);
  const bool verbatim = spec.layout == formats::LayoutId::kVerbatim;
  if (!has_decoder(spec.codec) && !find_verbatim(spec.codec))
    return unsupported("no kernel decoder for codec " + std::string(codec.name));
  if (verbatim && !find_verbatim(spec.codec))
    return unsupported("no kernel reads " + std::string(codec.name) + " in verbatim layout");
  if (verbatim && spec.k % find_verbatim(spec.codec)->multiple != 0)
    return unsupported("no kernel reads " + std::string(codec.name) + " rows of " + std::to_string(spec.k) +
                       " weights");
  if (spec.rows == 0 || spec.rows > formats::kRowGroup || spec.tokens == 0 || spec.k == 0)
    return internal_error("kernel spec out of range: " + kernel_name(spec));
  if (spec.arm == Arm::kFast && fast_arm(codec, spec.layout) != Arm::kFast)
    return internal_error("codec " + std::string(codec.name) + " has no integer form: " + kernel_name(spec));
  if (spec.arm == Arm::kWide && (verbatim || !has_wide_form(spec.codec) || spec.k % codec.block != 0))
    return unsupported("no kernel multiplies " + std::string(codec.name) + " rows of " + std::to_string(spec.k) +
                       " weights with activations of one scale a record");
  if (spec.arm == Arm::kBf16 && (!takes_many(spec) || fast_arm(codec, spec.layout) != Arm::kFast))
    return internal_error("tiles of bf16 serve many tokens of the fast arm only: " + kernel_name(spec));
  if (takes_many(spec) && !has_panel_kernel(spec))
    return internal_error("codec " + std::string(codec.name) + " has no form for many tokens: " + kernel_name(spec));
  if (verbatim)
    return {};
  return formats::r16_format(codec, spec.k).status();
}

StatusOr<mlir::OwningOpRef<vec::KernelOp>> build_kernel(mlir::MLIRContext& context, const KernelSpec& spec,
                                                        const VectorUnit& unit) {
  CORTIQ_RETURN_IF_ERROR(can_build(spec));
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
  if (spec.arm == Arm::kBf16 && !unit.tiles)
    return unsupported("tiles of bf16 need a target with tile registers: " + name);
  Emit emit(builder, loc, &block, unit.lanes, unit.byte_tables, unit.signed_dot4, unit.tiles);
  const Frame frame = make_frame(emit, kernel->getArgs(), spec);
  if (spec.layout == formats::LayoutId::kVerbatim)
    find_verbatim(spec.codec)->build(frame, kernel->getArgs());
  else
    build_r16(frame, kernel->getArgs(), unit, *formats::r16_format(formats::codec_info(spec.codec), spec.k));
  if (mlir::failed(mlir::verify(kernel->getOperation())))
    return internal_error("the kernel does not verify: " + name);
  return kernel;
}

} // namespace cortiq::codegen

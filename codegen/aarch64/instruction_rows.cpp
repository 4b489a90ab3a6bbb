#include "codegen/aarch64/instruction_rows.h"

#include <bit>
#include <cassert>

namespace cortiq::codegen::aarch64 {
namespace {

using asmjit::arm::Mem;

/// The register as `bits` of it: what loads and stores move.
a64::Vec sized(const a64::Vec& v, unsigned bits) {
  switch (bits) {
  case 8:
    return v.b();
  case 16:
    return v.h();
  case 32:
    return v.s();
  case 64:
    return v.d();
  default:
    return v.q();
  }
}

uint32_t lane(const Encoding& e) {
  return static_cast<uint32_t>(e.imm);
}

/// Lane by lane: base + index * scale, then a load into the lane. `mem` holds the base, operand 0 the indices, imm the
/// scale's logarithm. The indices come by way of the stack, two with a load: a lane by itself takes as many
/// instructions, and units that vectors need.
Emitted emit_gather(const Encoding& e) {
  const a64::Gp base = a64::x(e.mem.baseId()), at[2] = {a64::x(kScratchRegister), a64::x(kSecondScratchRegister)};
  const auto scale = asmjit::arm::lsl(static_cast<uint32_t>(e.imm));
  Emitted error = e.a.str(e.v(0).q(), e.room);
  for (uint32_t i = 0; i < 4; i += 2) {
    error |= e.a.ldpsw(at[0], at[1], e.room.cloneAdjusted(4 * i));
    for (uint32_t lane : {i, i + 1}) {
      constexpr int64_t kWordScale = 2; // that loads have for words
      if (lane == 0 && (e.imm == 0 || e.imm == kWordScale)) {
        error |= e.a.ldr(e.d().s(), asmjit::arm::ptr(base, at[0], scale));
        continue;
      }
      error |= e.a.add(at[lane % 2], base, at[lane % 2], scale);
      error |= lane == 0 ? e.a.ldr(e.d().s(), asmjit::arm::ptr(at[0]))
                         : e.a.ld1(e.d().s(lane), asmjit::arm::ptr(at[lane % 2]));
    }
  }
  return error;
}

Emitted emit_mul_imm(const Encoding& e) {
  const a64::Gp factor = a64::x(kScratchRegister);
  return move_immediate(e.a, factor, static_cast<uint64_t>(e.imm)) | e.a.mul(e.gd(), e.g(0), factor);
}

// Columns of a row: name, memory operands (none here), narrow memory, operand tied to the result, whether the result is
// written early, encoding.

const LaneRow kLaneRows[] = {
    // clang-format off
    {"vec.and", "", {{"and", 0, false, -1, false}, [](const Encoding& e) { return e.a.and_(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }}},
    {"vec.or", "", {{"orr", 0, false, -1, false}, [](const Encoding& e) { return e.a.orr(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }}},
    {"vec.xor", "", {{"eor", 0, false, -1, false}, [](const Encoding& e) { return e.a.eor(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }}},
    {"vec.and_not", "", {{"bic", 0, false, -1, false}, [](const Encoding& e) { return e.a.bic(e.d().b16(), e.v(1).b16(), e.v(0).b16()); }}},
    {"vec.add", "i8", {{"add", 0, false, -1, false}, [](const Encoding& e) { return e.a.add(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }}},
    {"vec.add", "i16", {{"add", 0, false, -1, false}, [](const Encoding& e) { return e.a.add(e.d().h8(), e.v(0).h8(), e.v(1).h8()); }}},
    {"vec.add", "i32", {{"add", 0, false, -1, false}, [](const Encoding& e) { return e.a.add(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.add", "f32", {{"fadd", 0, false, -1, false}, [](const Encoding& e) { return e.a.fadd(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.sub", "i8", {{"sub", 0, false, -1, false}, [](const Encoding& e) { return e.a.sub(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }}},
    {"vec.sub", "i16", {{"sub", 0, false, -1, false}, [](const Encoding& e) { return e.a.sub(e.d().h8(), e.v(0).h8(), e.v(1).h8()); }}},
    {"vec.sub", "i32", {{"sub", 0, false, -1, false}, [](const Encoding& e) { return e.a.sub(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.sub", "f32", {{"fsub", 0, false, -1, false}, [](const Encoding& e) { return e.a.fsub(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.mul", "i16", {{"mul", 0, false, -1, false}, [](const Encoding& e) { return e.a.mul(e.d().h8(), e.v(0).h8(), e.v(1).h8()); }}},
    {"vec.mul", "i32", {{"mul", 0, false, -1, false}, [](const Encoding& e) { return e.a.mul(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.mul", "f32", {{"fmul", 0, false, -1, false}, [](const Encoding& e) { return e.a.fmul(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.div", "f32", {{"fdiv", 0, false, -1, false}, [](const Encoding& e) { return e.a.fdiv(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.abs", "i8", {{"abs", 0, false, -1, false}, [](const Encoding& e) { return e.a.abs(e.d().b16(), e.v(0).b16()); }}},
    {"vec.abs", "i16", {{"abs", 0, false, -1, false}, [](const Encoding& e) { return e.a.abs(e.d().h8(), e.v(0).h8()); }}},
    {"vec.abs", "i32", {{"abs", 0, false, -1, false}, [](const Encoding& e) { return e.a.abs(e.d().s4(), e.v(0).s4()); }}},
    {"vec.shl", "i16", {{"shl", 0, false, -1, false}, [](const Encoding& e) { return e.a.shl(e.d().h8(), e.v(0).h8(), e.imm); }}},
    {"vec.shl", "i32", {{"shl", 0, false, -1, false}, [](const Encoding& e) { return e.a.shl(e.d().s4(), e.v(0).s4(), e.imm); }}},
    {"vec.shr_u", "i16", {{"ushr", 0, false, -1, false}, [](const Encoding& e) { return e.a.ushr(e.d().h8(), e.v(0).h8(), e.imm); }}},
    {"vec.shr_u", "i32", {{"ushr", 0, false, -1, false}, [](const Encoding& e) { return e.a.ushr(e.d().s4(), e.v(0).s4(), e.imm); }}},
    {"vec.shr_s", "i16", {{"sshr", 0, false, -1, false}, [](const Encoding& e) { return e.a.sshr(e.d().h8(), e.v(0).h8(), e.imm); }}},
    {"vec.shr_s", "i32", {{"sshr", 0, false, -1, false}, [](const Encoding& e) { return e.a.sshr(e.d().s4(), e.v(0).s4(), e.imm); }}},
    {"vec.fma", "f32", {{"fmla", 0, false, 2, false}, [](const Encoding& e) { return e.a.fmla(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }}},
    {"vec.pair_add", "i32", {{"saddlp", 0, false, -1, false}, [](const Encoding& e) { return e.a.saddlp(e.d().s4(), e.v(0).h8()); }}},
    // clang-format on
};

const Row kNamedRows[] = {
    // clang-format off
    // products by one lane: imm is the lane of the last factor
    {{"fmul_lane", 0, false, -1, false}, [](const Encoding& e) { return e.a.fmul(e.d().s4(), e.v(0).s4(), e.v(1).s(lane(e))); }},
    {{"fmla_lane", 0, false, 2, false}, [](const Encoding& e) { return e.a.fmla(e.d().s4(), e.v(0).s4(), e.v(1).s(lane(e))); }},
    {{"sdot_lane", 0, false, 0, false}, [](const Encoding& e) { return e.a.sdot(e.d().s4(), e.v(1).b16(), e.v(2).b4(lane(e))); }},
    {{"usdot_lane", 0, false, 0, false}, [](const Encoding& e) { return e.a.usdot(e.d().s4(), e.v(1).b16(), e.v(2).b4(lane(e))); }},
    {{"sdot", 0, false, 0, false}, [](const Encoding& e) { return e.a.sdot(e.d().s4(), e.v(1).b16(), e.v(2).b16()); }},
    {{"usdot", 0, false, 0, false}, [](const Encoding& e) { return e.a.usdot(e.d().s4(), e.v(1).b16(), e.v(2).b16()); }},
    {{"smmla", 0, false, 0, false}, [](const Encoding& e) { return e.a.smmla(e.d().s4(), e.v(1).b16(), e.v(2).b16()); }},
    {{"zip1", 0, false, -1, false}, [](const Encoding& e) { return e.a.zip1(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"zip2", 0, false, -1, false}, [](const Encoding& e) { return e.a.zip2(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"zip1_pairs", 0, false, -1, false}, [](const Encoding& e) { return e.a.zip1(e.d().d2(), e.v(0).d2(), e.v(1).d2()); }},
    {{"zip2_pairs", 0, false, -1, false}, [](const Encoding& e) { return e.a.zip2(e.d().d2(), e.v(0).d2(), e.v(1).d2()); }},
    {{"uzp1", 0, false, -1, false}, [](const Encoding& e) { return e.a.uzp1(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"uzp2", 0, false, -1, false}, [](const Encoding& e) { return e.a.uzp2(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    // integers
    {{"smull8", 0, false, -1, false}, [](const Encoding& e) { return e.a.smull(e.d().h8(), e.v(0).b8(), e.v(1).b8()); }},
    {{"smull8_high", 0, false, -1, false}, [](const Encoding& e) { return e.a.smull2(e.d().h8(), e.v(0).b16(), e.v(1).b16()); }},
    {{"smull16", 0, false, -1, false}, [](const Encoding& e) { return e.a.smull(e.d().s4(), e.v(0).h4(), e.v(1).h4()); }},
    {{"smull16_high", 0, false, -1, false}, [](const Encoding& e) { return e.a.smull2(e.d().s4(), e.v(0).h8(), e.v(1).h8()); }},
    {{"addp16", 0, false, -1, false}, [](const Encoding& e) { return e.a.addp(e.d().h8(), e.v(0).h8(), e.v(1).h8()); }},
    {{"addp32", 0, false, -1, false}, [](const Encoding& e) { return e.a.addp(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"sadalp", 0, false, 0, false}, [](const Encoding& e) { return e.a.sadalp(e.d().s4(), e.v(1).h8()); }},
    {{"ushr8", 0, false, -1, false}, [](const Encoding& e) { return e.a.ushr(e.d().b16(), e.v(0).b16(), e.imm); }},
    {{"shl32", 0, false, -1, false}, [](const Encoding& e) { return e.a.shl(e.d().s4(), e.v(0).s4(), e.imm); }},
    {{"add32", 0, false, -1, false}, [](const Encoding& e) { return e.a.add(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"sub8", 0, false, -1, false}, [](const Encoding& e) { return e.a.sub(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }},
    {{"neg32", 0, false, -1, false}, [](const Encoding& e) { return e.a.neg(e.d().s4(), e.v(0).s4()); }},
    {{"umin32", 0, false, -1, false}, [](const Encoding& e) { return e.a.umin(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"ushl32", 0, false, -1, false}, [](const Encoding& e) { return e.a.ushl(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"is_negative8", 0, false, -1, false}, [](const Encoding& e) { return e.a.cmlt(e.d().b16(), e.v(0).b16(), 0); }},
    {{"is_not_zero8", 0, false, -1, false}, [](const Encoding& e) { return e.a.cmtst(e.d().b16(), e.v(0).b16(), e.v(0).b16()); }},
    {{"and", 0, false, -1, false}, [](const Encoding& e) { return e.a.and_(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }},
    {{"eor", 0, false, -1, false}, [](const Encoding& e) { return e.a.eor(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }},
    {{"tbl", 0, false, -1, false}, [](const Encoding& e) { return e.a.tbl(e.d().b16(), e.v(0).b16(), e.v(1).b16()); }},
    {{"select", 0, false, 0, false}, [](const Encoding& e) { return e.a.bsl(e.d().b16(), e.v(1).b16(), e.v(2).b16()); }},
    // floats and conversions
    {{"fadd", 0, false, -1, false}, [](const Encoding& e) { return e.a.fadd(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"is_greater", 0, false, -1, false}, [](const Encoding& e) { return e.a.fcmgt(e.d().s4(), e.v(0).s4(), e.v(1).s4()); }},
    {{"scvtf", 0, false, -1, false}, [](const Encoding& e) { return e.a.scvtf(e.d().s4(), e.v(0).s4()); }},
    {{"scvtf_fixed", 0, false, -1, false}, [](const Encoding& e) { return e.a.scvtf(e.d().s4(), e.v(0).s4(), e.imm); }}, // imm bits behind the point
    {{"fcvtns", 0, false, -1, false}, [](const Encoding& e) { return e.a.fcvtns(e.d().s4(), e.v(0).s4()); }},
    {{"fcvtl", 0, false, -1, false}, [](const Encoding& e) { return e.a.fcvtl(e.d().s4(), e.v(0).h4()); }},
    {{"shll", 0, false, -1, false}, [](const Encoding& e) { return e.a.shll(e.d().s4(), e.v(0).h4(), 16); }},
    {{"sshll8", 0, false, -1, false}, [](const Encoding& e) { return e.a.sshll(e.d().h8(), e.v(0).b8(), 0); }},
    {{"ushll8", 0, false, -1, false}, [](const Encoding& e) { return e.a.ushll(e.d().h8(), e.v(0).b8(), 0); }},
    {{"sshll16", 0, false, -1, false}, [](const Encoding& e) { return e.a.sshll(e.d().s4(), e.v(0).h4(), 0); }},
    {{"ushll16", 0, false, -1, false}, [](const Encoding& e) { return e.a.ushll(e.d().s4(), e.v(0).h4(), 0); }},
    // moving lanes: imm is the lane
    {{"dup8", 0, false, -1, false}, [](const Encoding& e) { return e.a.dup(e.d().b16(), e.v(0).b(lane(e))); }},
    {{"dup16", 0, false, -1, false}, [](const Encoding& e) { return e.a.dup(e.d().h8(), e.v(0).h(lane(e))); }},
    {{"dup32", 0, false, -1, false}, [](const Encoding& e) { return e.a.dup(e.d().s4(), e.v(0).s(lane(e))); }},
    {{"swap_halves", 0, false, -1, false}, [](const Encoding& e) { return e.a.ext(e.d().b16(), e.v(0).b16(), e.v(0).b16(), 8); }},
    {{"swap_words", 0, false, -1, false}, [](const Encoding& e) { return e.a.rev64(e.d().s4(), e.v(0).s4()); }},
    // memory
    {{"load", 0, false, -1, false}, [](const Encoding& e) { return e.a.ldr(sized(e.d(), e.bits), e.mem); }},
    {{"store", 0, false, -1, false}, [](const Encoding& e) { return e.a.str(sized(e.v(0), e.bits), e.mem); }},
    {{"fill", 0, false, -1, false}, [](const Encoding& e) { return e.a.ldr(e.d().q(), e.mem); }},
    {{"spill", 0, false, -1, false}, [](const Encoding& e) { return e.a.str(e.v(0).q(), e.mem); }},
    {{"load_splat8", 0, false, -1, false}, [](const Encoding& e) { return e.a.ld1r(e.d().b16(), e.mem); }},
    {{"load_splat16", 0, false, -1, false}, [](const Encoding& e) { return e.a.ld1r(e.d().h8(), e.mem); }},
    {{"insert_d", 0, false, 0, false}, [](const Encoding& e) { return e.a.ld1(e.d().d(lane(e)), e.mem); }},
    {{"insert_s", 0, false, 0, false}, [](const Encoding& e) { return e.a.ld1(e.d().s(lane(e)), e.mem); }},
    {{"insert_h", 0, false, 0, false}, [](const Encoding& e) { return e.a.ld1(e.d().h(lane(e)), e.mem); }},
    {{"insert_b", 0, false, 0, false}, [](const Encoding& e) { return e.a.ld1(e.d().b(lane(e)), e.mem); }},
    {{"extract_d", 0, false, -1, false}, [](const Encoding& e) { return e.a.st1(e.v(0).d(lane(e)), e.mem); }},
    {{"extract_s", 0, false, -1, false}, [](const Encoding& e) { return e.a.st1(e.v(0).s(lane(e)), e.mem); }},
    {{"extract_h", 0, false, -1, false}, [](const Encoding& e) { return e.a.st1(e.v(0).h(lane(e)), e.mem); }},
    {{"extract_b", 0, false, -1, false}, [](const Encoding& e) { return e.a.st1(e.v(0).b(lane(e)), e.mem); }},
    {{"gather", 0, false, -1, false}, emit_gather},
    {{"splat_byte", 0, false, -1, false}, [](const Encoding& e) { return e.a.movi(e.d().b16(), static_cast<uint8_t>(e.imm)); }},
    // scalars
    {{"entry", 0, false, -1, false}, [](const Encoding& e) { return e.result == 0 ? Emitted(asmjit::kErrorOk) : e.a.mov(e.gd(), a64::x0); }},
    {{"ldr", 0, false, -1, false}, [](const Encoding& e) { return e.a.ldr(e.gd(), e.mem); }},
    {{"ldr4", 0, false, -1, false}, [](const Encoding& e) { return e.a.ldr(e.gd().w(), e.mem); }},
    {{"str", 0, false, -1, false}, [](const Encoding& e) { return e.a.str(e.g(0), e.mem); }},
    {{"mov", 0, false, -1, false}, [](const Encoding& e) { return e.result == e.uses[0] ? Emitted(asmjit::kErrorOk) : e.a.mov(e.gd(), e.g(0)); }},
    {{"mov_imm", 0, false, -1, false}, [](const Encoding& e) { return move_immediate(e.a, e.gd(), static_cast<uint64_t>(e.imm)); }},
    {{"adr", 0, false, -1, false}, [](const Encoding& e) { return e.a.adr(e.gd(), asmjit::Label(e.mem.baseId())); }},
    {{"add_imm", 0, false, -1, false}, [](const Encoding& e) { return add_immediate(e.a, e.gd(), e.g(0), e.imm); }},
    {{"add_shifted", 0, false, -1, false}, [](const Encoding& e) { return e.a.add(e.gd(), e.g(0), e.g(1), asmjit::arm::lsl(lane(e))); }},
    {{"lsl", 0, false, -1, false}, [](const Encoding& e) { return e.a.lsl(e.gd(), e.g(0), lane(e)); }},
    {{"mul_imm", 0, false, -1, false}, emit_mul_imm},
    // clang-format on
};

} // namespace

Emitted move_immediate(a64::Assembler& a, const a64::Gp& dst, uint64_t value) {
  // Sixteen bits at a time, starting from all zeros or all ones, whichever leaves less to write.
  unsigned zeros = 0, ones = 0;
  for (unsigned at = 0; at < 64; at += 16) {
    zeros += (value >> at & 0xffff) == 0;
    ones += (value >> at & 0xffff) == 0xffff;
  }
  const bool inverted = ones > zeros;
  const uint64_t skip = inverted ? 0xffff : 0;
  Emitted error = asmjit::kErrorOk;
  bool first = true;
  for (unsigned at = 0; at < 64; at += 16) {
    const uint64_t part = value >> at & 0xffff;
    if (part == skip && !(at == 48 && first))
      continue;
    if (!first)
      error |= a.movk(dst, part, asmjit::arm::lsl(at));
    else if (inverted)
      error |= a.movn(dst, part ^ 0xffff, asmjit::arm::lsl(at));
    else
      error |= a.movz(dst, part, asmjit::arm::lsl(at));
    first = false;
  }
  return error;
}

Emitted add_immediate(a64::Assembler& a, const a64::Gp& dst, const a64::Gp& src, int64_t value) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  constexpr uint64_t kImmediate = 0xfff;
  if (value == 0)
    return dst.id() == src.id() ? Emitted(asmjit::kErrorOk) : a.mov(dst, src);
  if (magnitude <= (kImmediate << 12 | kImmediate)) {
    const uint64_t low = magnitude & kImmediate, high = magnitude >> 12;
    Emitted error = asmjit::kErrorOk;
    a64::Gp from = src;
    if (high) {
      error |= value < 0 ? a.sub(dst, from, high, asmjit::arm::lsl(12)) : a.add(dst, from, high, asmjit::arm::lsl(12));
      from = dst;
    }
    if (low)
      error |= value < 0 ? a.sub(dst, from, low) : a.add(dst, from, low);
    return error;
  }
  const a64::Gp amount = a64::x(kSecondScratchRegister);
  return move_immediate(a, amount, static_cast<uint64_t>(value)) | a.add(dst, src, amount);
}

const Row* lane_row(std::string_view op, std::string_view lane) {
  for (const LaneRow& row : kLaneRows)
    if (row.op == op && (row.lane.empty() || row.lane == lane))
      return &row.row;
  return nullptr;
}

const Row* named_row(std::string_view name) {
  for (const Row& row : kNamedRows)
    if (row.name == name)
      return &row;
  assert(false && "an expansion names a row that isn't in the table");
  return nullptr;
}

} // namespace cortiq::codegen::aarch64

#include "codegen/x86/instruction_rows.h"

#include <cassert>

namespace cortiq::codegen::x86 {
namespace {

using Xbyak::Address;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

bool kAvx2(const X86Features& f) {
  return f.avx2;
}
bool kAvx512(const X86Features& f) {
  return f.avx512;
}
bool kAvxVnni(const X86Features& f) {
  return f.avx_vnni && !f.avx512;
}
bool kAvx512Vnni(const X86Features& f) {
  return f.avx512_vnni;
}
bool kAvx512Vbmi(const X86Features& f) {
  return f.avx512_vbmi;
}
bool kAmx(const X86Features& f) {
  return f.amx;
}

/// Tile number `which` of an instruction on tiles, a byte each.
Xbyak::Tmm tile(const Encoding& e, int which = 0) {
  return Xbyak::Tmm(static_cast<int>(e.imm >> 8 * which & 7));
}

/// The mask register of an instruction on bits of words.
Xbyak::Opmask mask(const Encoding& e) {
  return Xbyak::Opmask(static_cast<int>(e.imm));
}

/// Calls `write` with operand `use` where it is: in memory or in a register of the operation's width.
template <class Write>
void with_memory(const Encoding& e, int use, Write write) {
  if (e.in_memory(use))
    write(static_cast<const Xbyak::Operand&>(e.mem));
  else
    write(static_cast<const Xbyak::Operand&>(e.r(use)));
}

/// The same for a source that is 1/divisor as wide as the result.
template <class Write>
void with_narrow(const Encoding& e, unsigned divisor, Write write) {
  if (e.in_memory(0))
    write(static_cast<const Xbyak::Operand&>(e.mem));
  else
    write(static_cast<const Xbyak::Operand&>(Encoding::vector(e.uses[0], e.bits / divisor)));
}

/// a * b + c: the form is the one whose overwritten operand already sits in the result's register.
void emit_fma(const Encoding& e) {
  int a = 0, b = 1; // uses of the factors; `b` is the one that may be memory
  if (e.in_memory(a) || (!e.in_memory(b) && e.uses[b] == e.result))
    std::swap(a, b);
  const Xmm d = e.d();
  if (e.in_memory(2)) {
    if (e.uses[a] != e.result)
      e.c.vmovaps(d, e.r(a));
    e.c.vfmadd213ps(d, e.r(b), e.mem);
  } else if (e.uses[2] == e.result) {
    with_memory(e, b, [&](auto&& m) { e.c.vfmadd231ps(d, e.r(a), m); });
  } else if (e.uses[a] == e.result) {
    with_memory(e, b, [&](auto&& m) { e.c.vfmadd132ps(d, e.r(2), m); });
  } else {
    e.c.vmovaps(d, e.r(2));
    with_memory(e, b, [&](auto&& m) { e.c.vfmadd231ps(d, e.r(a), m); });
  }
}

/// EVEX has no vpsignb: negate all, take back x where w isn't negative, clear where w is 0.
void emit_sign(const Encoding& e) {
  const Xbyak::Opmask not_negative(1), not_zero(2);
  e.c.vpmovb2m(not_negative, e.r(1));
  e.c.knotq(not_negative, not_negative);
  e.c.vptestmb(not_zero, e.r(1), e.r(1));
  e.c.vpxord(e.d(), e.d(), e.d());
  e.c.vpsubb(e.d(), e.d(), e.r(0));
  e.c.vmovdqu8(e.d() | not_negative, e.r(0));
  e.c.vmovdqu8(e.d() | not_zero | Xbyak::util::T_z, e.d());
}

/// The gather's address: `mem` holds base and displacement, operand 0 the indices, imm their scale.
Address gather_address(const Encoding& e) {
  const Xbyak::RegExp base = e.mem.getRegExp();
  return Xbyak::util::ptr[base + e.r(0) * static_cast<int>(e.imm)];
}

/// Operand 1 is the mask, which the instruction clears.
void emit_gather_vex(const Encoding& e) {
  e.c.vpgatherdd(e.d(), gather_address(e), e.r(1));
}

void emit_gather_evex(const Encoding& e) {
  const Xbyak::Opmask all(1);
  e.c.kxnorw(all, all, all);
  e.c.vpgatherdd(e.d() | all, gather_address(e));
}

/// imm: for each 128-bit quarter of the result, which quarter it takes (two halves of one bit each in 256-bit form).
void emit_swap_quarters(const Encoding& e) {
  if (e.bits == 512)
    e.c.vshuff32x4(Zmm(e.result), Zmm(e.uses[0]), Zmm(e.uses[0]), static_cast<uint8_t>(e.imm));
  else
    e.c.vshuff32x4(Ymm(e.result), Ymm(e.uses[0]), Ymm(e.uses[0]), 1);
}

void emit_mov(const Encoding& e) {
  if (e.result != e.uses[0])
    e.c.mov(e.gd(), e.g(0));
}

void emit_mov_imm(const Encoding& e) {
  if (e.imm == 0)
    e.c.xor_(e.gd().cvt32(), e.gd().cvt32());
  else
    e.c.mov(e.gd(), static_cast<uint64_t>(e.imm));
}

void emit_imul(const Encoding& e) {
  if (e.in_memory(0))
    e.c.imul(e.gd(), e.mem, static_cast<int>(e.imm));
  else
    e.c.imul(e.gd(), e.g(0), static_cast<int>(e.imm));
}

// Columns of a row: name, operands that may be in memory (bit 0 is the first), whether such memory is as narrow as the
// operand, operand tied to the result, whether the result is written early, commutative, encoding.

const LaneRow kLaneRows[] = {
    // clang-format off
    {"vec.and", "", kAvx2, {{"vpand", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpand(e.d(), e.r(0), m); }); }}},
    {"vec.and", "", kAvx512, {{"vpandd", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpandd(e.d(), e.r(0), m); }); }}},
    {"vec.or", "", kAvx2, {{"vpor", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpor(e.d(), e.r(0), m); }); }}},
    {"vec.or", "", kAvx512, {{"vpord", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpord(e.d(), e.r(0), m); }); }}},
    {"vec.xor", "", kAvx2, {{"vpxor", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpxor(e.d(), e.r(0), m); }); }}},
    {"vec.xor", "", kAvx512, {{"vpxord", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpxord(e.d(), e.r(0), m); }); }}},
    {"vec.and_not", "", kAvx2, {{"vpandn", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpandn(e.d(), e.r(0), m); }); }}},
    {"vec.and_not", "", kAvx512, {{"vpandnd", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpandnd(e.d(), e.r(0), m); }); }}},
    {"vec.add", "i8", kAvx2, {{"vpaddb", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpaddb(e.d(), e.r(0), m); }); }}},
    {"vec.add", "i16", kAvx2, {{"vpaddw", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpaddw(e.d(), e.r(0), m); }); }}},
    {"vec.add", "i32", kAvx2, {{"vpaddd", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpaddd(e.d(), e.r(0), m); }); }}},
    {"vec.add", "f32", kAvx2, {{"vaddps", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vaddps(e.d(), e.r(0), m); }); }}},
    {"vec.sub", "i8", kAvx2, {{"vpsubb", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpsubb(e.d(), e.r(0), m); }); }}},
    {"vec.sub", "i16", kAvx2, {{"vpsubw", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpsubw(e.d(), e.r(0), m); }); }}},
    {"vec.sub", "i32", kAvx2, {{"vpsubd", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpsubd(e.d(), e.r(0), m); }); }}},
    {"vec.sub", "f32", kAvx2, {{"vsubps", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vsubps(e.d(), e.r(0), m); }); }}},
    {"vec.mul", "i16", kAvx2, {{"vpmullw", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmullw(e.d(), e.r(0), m); }); }}},
    {"vec.mul", "i32", kAvx2, {{"vpmulld", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmulld(e.d(), e.r(0), m); }); }}},
    {"vec.mul", "f32", kAvx2, {{"vmulps", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vmulps(e.d(), e.r(0), m); }); }}},
    {"vec.fmin", "f32", kAvx2, {{"vminps", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vminps(e.d(), e.r(0), m); }); }}},
    {"vec.fmax", "f32", kAvx2, {{"vmaxps", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vmaxps(e.d(), e.r(0), m); }); }}},
    {"vec.div", "f32", kAvx2, {{"vdivps", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vdivps(e.d(), e.r(0), m); }); }}},
    {"vec.lookup16", "i8", kAvx2, {{"vpshufb", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpshufb(e.d(), e.r(0), m); }); }}},
    {"vec.lookup64", "i8", kAvx512Vbmi, {{"vpermb", 0b01, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vpermb(e.d(), e.r(1), m); }); }}},
    {"vec.pack_bf16", "bf16", kAmx, {{"vcvtne2ps2bf16", 0b01, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vcvtne2ps2bf16(e.d(), e.r(1), m); }); }}},
    {"vec.lookup128", "i8", kAvx512Vbmi, {{"vpermi2b", 0b100, false, 0, false}, false, [](const Encoding& e) { with_memory(e, 2, [&](auto&& m) { e.c.vpermi2b(e.d(), e.r(1), m); }); }}},
    {"vec.bit_fields", "i8", kAvx512Vbmi, {{"vpmultishiftqb", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmultishiftqb(e.d(), e.r(0), m); }); }}},
    {"vec.blend_bits", "", kAvx512, {{"vpternlogd", 0b100, false, 0, false}, false, [](const Encoding& e) { with_memory(e, 2, [&](auto&& m) { e.c.vpternlogd(e.d(), e.r(1), m, 0xca); }); }}},
    {"vec.dot2", "i16", kAvx2, {{"vpmaddubsw", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmaddubsw(e.d(), e.r(0), m); }); }}},
    {"vec.mul_pairs", "i32", kAvx2, {{"vpmaddwd", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmaddwd(e.d(), e.r(0), m); }); }}},
    {"vec.abs", "i8", kAvx2, {{"vpabsb", 0b1, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vpabsb(e.d(), m); }); }}},
    {"vec.abs", "i16", kAvx2, {{"vpabsw", 0b1, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vpabsw(e.d(), m); }); }}},
    {"vec.abs", "i32", kAvx2, {{"vpabsd", 0b1, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vpabsd(e.d(), m); }); }}},
    {"vec.sign", "i8", kAvx2, {{"vpsignb", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpsignb(e.d(), e.r(0), m); }); }}},
    {"vec.sign", "i8", kAvx512, {{"sign", 0b0, false, -1, true}, false, [](const Encoding& e) { emit_sign(e); }}},
    {"vec.shl", "i16", kAvx2, {{"vpsllw", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpsllw(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {"vec.shl", "i32", kAvx2, {{"vpslld", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpslld(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {"vec.shr_u", "i16", kAvx2, {{"vpsrlw", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpsrlw(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {"vec.shr_u", "i32", kAvx2, {{"vpsrld", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpsrld(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {"vec.shr_s", "i16", kAvx2, {{"vpsraw", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpsraw(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {"vec.shr_s", "i32", kAvx2, {{"vpsrad", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpsrad(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {"vec.shr_v", "i32", kAvx2, {{"vpsrlvd", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpsrlvd(e.d(), e.r(0), m); }); }}},
    {"vec.fma", "f32", kAvx2, {{"vfmadd", 0b111, false, -1, false}, false, [](const Encoding& e) { emit_fma(e); }}},
    {"vec.load_repeated", "i8", kAvx2, {{"vbroadcasti128", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vbroadcasti128(Ymm(e.result), e.mem); }}},
    {"vec.load_repeated", "i8", kAvx512, {{"vbroadcasti32x4", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vbroadcasti32x4(e.bits == 512 ? Zmm(e.result) : Ymm(e.result), e.mem); }}},
    {"vec.load_splat", "f32", kAvx2, {{"vbroadcastss", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vbroadcastss(e.d(), e.mem); }}},
    {"vec.load_splat", "i32", kAvx2, {{"vpbroadcastd", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpbroadcastd(e.d(), e.mem); }}},
    {"vec.load_splat", "i16", kAvx2, {{"vpbroadcastw", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpbroadcastw(e.d(), e.mem); }}},
    {"vec.load_splat", "f16", kAvx2, {{"vpbroadcastw", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpbroadcastw(e.d(), e.mem); }}},
    {"vec.load_splat", "bf16", kAvx2, {{"vpbroadcastw", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpbroadcastw(e.d(), e.mem); }}},
    {"vec.load_splat", "i8", kAvx2, {{"vpbroadcastb", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpbroadcastb(e.d(), e.mem); }}},
    // clang-format on
};

struct NamedRow {
  bool (*needs)(const X86Features&);
  Row row;
};

const NamedRow kNamedRows[] = {
    // clang-format off
    {kAvx2, {{"vpmovsxbw", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 2, [&](auto&& m) { e.c.vpmovsxbw(e.d(), m); }); }}},
    {kAvx2, {{"vpmovzxbw", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 2, [&](auto&& m) { e.c.vpmovzxbw(e.d(), m); }); }}},
    {kAvx2, {{"vpmovsxbd", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 4, [&](auto&& m) { e.c.vpmovsxbd(e.d(), m); }); }}},
    {kAvx2, {{"vpmovzxbd", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 4, [&](auto&& m) { e.c.vpmovzxbd(e.d(), m); }); }}},
    {kAvx2, {{"vpmovsxwd", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 2, [&](auto&& m) { e.c.vpmovsxwd(e.d(), m); }); }}},
    {kAvx2, {{"vpmovzxwd", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 2, [&](auto&& m) { e.c.vpmovzxwd(e.d(), m); }); }}},
    {kAvx2, {{"vcvtph2ps", 0b1, true, -1, false}, false, [](const Encoding& e) { with_narrow(e, 2, [&](auto&& m) { e.c.vcvtph2ps(e.d(), m); }); }}},
    {kAvx2, {{"vcvtdq2ps", 0b1, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vcvtdq2ps(e.d(), m); }); }}},
    {kAvx2, {{"vcvtps2dq", 0b1, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 0, [&](auto&& m) { e.c.vcvtps2dq(e.d(), m); }); }}},
    {kAvx2, {{"vpmaddubsw", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmaddubsw(e.d(), e.r(0), m); }); }}},
    {kAvx2, {{"vpmaddwd", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpmaddwd(e.d(), e.r(0), m); }); }}},
    {kAvx2, {{"vpaddd", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpaddd(e.d(), e.r(0), m); }); }}},
    {kAvx2, {{"vaddps", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vaddps(e.d(), e.r(0), m); }); }}},
    {kAvx2, {{"vpand", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpand(e.d(), e.r(0), m); }); }}},
    {kAvx512, {{"vpand", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpandd(e.d(), e.r(0), m); }); }}},
    {kAvxVnni, {{"vpdpbusd", 0b100, false, 0, false}, false, [](const Encoding& e) { with_memory(e, 2, [&](auto&& m) { e.c.vpdpbusd(e.d(), e.r(1), m, Xbyak::VexEncoding); }); }}},
    {kAvx512Vnni, {{"vpdpbusd", 0b100, false, 0, false}, false, [](const Encoding& e) { with_memory(e, 2, [&](auto&& m) { e.c.vpdpbusd(e.d(), e.r(1), m, Xbyak::EvexEncoding); }); }}},
    {kAvx2, {{"vpslld", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpslld(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"vpshufd", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpshufd(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"vpermilps", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpermilps(e.d(), e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"swap_quarters", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vperm2f128(Ymm(e.result), Ymm(e.uses[0]), Ymm(e.uses[0]), 1); }}},
    {kAvx512, {{"swap_quarters", 0b0, false, -1, false}, false, [](const Encoding& e) { emit_swap_quarters(e); }}},
    {kAvx2, {{"all_ones", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpcmpeqd(e.d(), e.d(), e.d()); }}},
    {kAvx2, {{"zero", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpxor(e.vector(e.result, 128), e.vector(e.result, 128), e.vector(e.result, 128)); }}},
    {kAvx512, {{"zero", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpxord(e.d(), e.d(), e.d()); }}},
    {kAvx2, {{"load", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vmovups(e.d(), e.mem); }}},
    {kAvx2, {{"store", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vmovups(e.mem, e.r(0)); }}},
    {kAvx2, {{"load8", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vmovq(e.d(), e.mem); }}},
    {kAvx2, {{"load4", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vmovd(e.d(), e.mem); }}},
    {kAvx2, {{"store8", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vmovq(e.mem, e.r(0)); }}},
    {kAvx2, {{"store4", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vmovd(e.mem, e.r(0)); }}},
    {kAvx2, {{"insert_b", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpinsrb(e.d(), e.r(0), e.mem, static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"extract_b", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpextrb(e.mem, e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"insert_w", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpinsrw(e.d(), e.r(0), e.mem, static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"extract_w", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpextrw(e.mem, e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"insert_d", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpinsrd(e.d(), e.r(0), e.mem, static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"extract_d", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpextrd(e.mem, e.r(0), static_cast<uint8_t>(e.imm)); }}},
    {kAvx2, {{"insert_half", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vinserti128(Ymm(e.result), Ymm(e.uses[0]), Xmm(e.uses[1]), 1); }}},
    {kAvx512, {{"insert_half", 0b0, false, -1, false}, false, [](const Encoding& e) { if (e.bits == 512) { e.c.vinserti64x4(Zmm(e.result), Zmm(e.uses[0]), Ymm(e.uses[1]), 1); } else { e.c.vinserti32x4(Ymm(e.result), Ymm(e.uses[0]), Xmm(e.uses[1]), 1); } }}},
    {kAvx2, {{"upper_half", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vextracti128(Xmm(e.result), Ymm(e.uses[0]), 1); }}},
    {kAvx512, {{"upper_half", 0b0, false, -1, false}, false, [](const Encoding& e) { if (e.bits == 512) { e.c.vextracti64x4(Ymm(e.result), Zmm(e.uses[0]), 1); } else { e.c.vextracti32x4(Xmm(e.result), Ymm(e.uses[0]), 1); } }}},
    {kAvx2, {{"gather", 0b0, false, -1, true}, false, [](const Encoding& e) { emit_gather_vex(e); }}},
    {kAvx2, {{"vmulps", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vmulps(e.d(), e.r(0), m); }); }}},
    {kAvx2, {{"vpcmpeqd", 0b11, false, -1, false}, true, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpcmpeqd(e.d(), e.r(0), m); }); }}},
    {kAvx2, {{"vpblendvb", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpblendvb(e.d(), e.r(0), m, e.r(2)); }); }}},
    {kAvx2, {{"vblendvps", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vblendvps(e.d(), e.r(0), m, e.r(2)); }); }}},
    {kAvx512, {{"signs_of_bytes", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.vpmovb2m(mask(e), e.r(0)); }}},
    {kAvx512, {{"blend_bytes", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vpblendmb(e.d() | mask(e), e.r(0), m); }); }}},
    {kAvx512, {{"test_bits", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vptestmd(mask(e), e.r(0), m); }); }}},
    {kAvx512, {{"blend_bits", 0b10, false, -1, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vblendmps(e.d() | mask(e), e.r(0), m); }); }}},
    {kAvx512, {{"mul_bits", 0b10, false, 0, false}, false, [](const Encoding& e) { with_memory(e, 1, [&](auto&& m) { e.c.vmulps(e.d() | mask(e), e.d(), m); }); }}},
    {kAvx512, {{"gather", 0b0, false, -1, true}, false, [](const Encoding& e) { emit_gather_evex(e); }}},
    {kAvx2, {{"entry", 0b0, false, -1, false}, false, [](const Encoding& e) { if (e.result != Xbyak::Operand::RDI) { e.c.mov(e.gd(), Xbyak::Reg64(Xbyak::Operand::RDI)); } }}},
    {kAvx2, {{"mov_load", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.mov(e.gd(), e.mem); }}},
    {kAvx2, {{"mov_load4", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.mov(e.gd().cvt32(), e.mem); }}},
    {kAvx2, {{"mov_store", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.mov(e.mem, e.g(0)); }}},
    {kAvx2, {{"mov", 0b0, false, -1, false}, false, [](const Encoding& e) { emit_mov(e); }}},
    {kAvx2, {{"mov_imm", 0b0, false, -1, false}, false, [](const Encoding& e) { emit_mov_imm(e); }}},
    {kAvx2, {{"lea", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.lea(e.gd(), e.mem); }}},
    {kAvx2, {{"imul", 0b1, false, -1, false}, false, [](const Encoding& e) { emit_imul(e); }}},
    {kAvx2, {{"shl", 0b0, false, 0, false}, false, [](const Encoding& e) { e.c.shl(e.gd(), static_cast<int>(e.imm)); }}},
    {kAvx2, {{"add_imm", 0b0, false, 0, false}, false, [](const Encoding& e) { e.c.add(e.gd(), static_cast<uint32_t>(e.imm)); }}},
    {kAvx2, {{"prefetch_near", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.prefetcht0(e.mem); }}},
    {kAvx2, {{"prefetch", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.prefetcht1(e.mem); }}},
    {kAmx, {{"ldtilecfg", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.ldtilecfg(e.mem); }}},
    {kAmx, {{"tilerelease", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.tilerelease(); }}},
    {kAmx, {{"tilezero", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.tilezero(tile(e)); }}},
    {kAmx, {{"tileloadd", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.tileloadd(tile(e), e.mem); }}},
    {kAmx, {{"tilestored", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.tilestored(e.mem, tile(e)); }}},
    {kAmx, {{"tdpbf16ps", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.tdpbf16ps(tile(e), tile(e, 1), tile(e, 2)); }}},
    {kAmx, {{"tdpbssd", 0b0, false, -1, false}, false, [](const Encoding& e) { e.c.tdpbssd(tile(e), tile(e, 1), tile(e, 2)); }}},
    // clang-format on
};

} // namespace

const Row* lane_row(std::string_view op, std::string_view lane, const X86Features& features) {
  const Row* found = nullptr;
  for (const LaneRow& row : kLaneRows)
    if (row.op == op && (row.lane.empty() || row.lane == lane) && row.needs(features))
      found = &row.row;
  return found;
}

const Row* named_row(std::string_view name, const X86Features& features) {
  const Row* found = nullptr;
  for (const NamedRow& row : kNamedRows)
    if (row.row.name == name && row.needs(features))
      found = &row.row;
  assert(found && "an expansion names a row that isn't in the table");
  return found;
}

} // namespace cortiq::codegen::x86

#include "test/unit/runtime/scalar_kernel.h"

#include <cstddef>
#include <xbyak/xbyak.h>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::test {
namespace {

using formats::KernelArgs;

/// for every group, token, row: out = sum over k of w[k][row] * act[k], then bias and residual.
class Emitter : public Xbyak::CodeGenerator {
public:
  explicit Emitter(const ScalarKernelSpec& spec) {
    const auto& args = rdi;
    const auto &weights = rsi, &out = rcx, &group = r8, &act = r9, &token = r10, &row = r11, &k = rax, &w = rdx,
               &value = r15;
    const auto &row_out = rbx, &group_residual = r12, &row_residual = r13, &bias = r14;
    const auto &sum = xmm0, &product = xmm1;
    push(rbp);
    mov(rbp, rsp);
    for (const auto& saved : {rbx, r12, r13, r14, r15})
      push(saved);
    mov(weights, ptr[args + offsetof(KernelArgs, weights)]);
    mov(out, ptr[args + offsetof(KernelArgs, out)]);
    mov(group, ptr[args + offsetof(KernelArgs, groups)]);
    mov(group_residual, ptr[args + offsetof(KernelArgs, residual)]);
    mov(bias, ptr[args + offsetof(KernelArgs, bias)]);
    Xbyak::Label next_group, next_token, next_row, next_k;
    L(next_group);
    mov(act, ptr[args + offsetof(KernelArgs, act)]);
    mov(row_out, out);
    mov(row_residual, group_residual);
    if (spec.input == ScalarInput::kBf16)
      mov(token, ptr[args + offsetof(KernelArgs, tokens)]);
    else
      mov(token, spec.tokens);
    L(next_token);
    xor_(row, row);
    L(next_row);
    xorps(sum, sum);
    lea(w, ptr[weights + row * 4]);
    xor_(k, k);
    L(next_k);
    load_value(spec, act, k, value);
    mulss(xmm1, ptr[w]);
    addss(sum, product);
    add(w, spec.rows * 4);
    inc(k);
    cmp(k, static_cast<uint32_t>(spec.k));
    jb(next_k);
    if (spec.bias)
      addss(sum, ptr[bias + row * 4]);
    if (spec.residual)
      addss(sum, ptr[row_residual + row * 4]);
    movss(ptr[row_out + row * 4], sum);
    inc(row);
    cmp(row, spec.rows);
    jb(next_row);
    add(act, ptr[args + offsetof(KernelArgs, act_stride)]);
    add(row_out, ptr[args + offsetof(KernelArgs, out_stride)]);
    if (spec.residual)
      add(row_residual, ptr[args + offsetof(KernelArgs, residual_stride)]);
    dec(token);
    jnz(next_token, T_NEAR);
    add(weights, static_cast<uint32_t>(spec.rows * spec.k * 4));
    add(out, spec.rows * 4);
    add(group_residual, spec.rows * 4);
    add(bias, spec.rows * 4);
    dec(group);
    jnz(next_group, T_NEAR);
    for (const auto& saved : {r15, r14, r13, r12, rbx})
      pop(saved);
    pop(rbp);
    ret();
  }

private:
  /// xmm1 = activation k of the token at `act`.
  void load_value(const ScalarKernelSpec& spec, const Xbyak::Reg64& act, const Xbyak::Reg64& k,
                  const Xbyak::Reg64& value) {
    const formats::Q8ActLayout codes = formats::q8_act_layout(spec.k);
    switch (spec.input) {
    case ScalarInput::kF32:
      movss(xmm1, ptr[act + k * 4]);
      break;
    case ScalarInput::kCodes:
      movsx(value.cvt32(), byte[act + k]);
      cvtsi2ss(xmm1, value.cvt32());
      mov(value, k);
      shr(value, 5);
      mulss(xmm1, ptr[act + value * 4 + static_cast<uint32_t>(codes.scale)]);
      break;
    case ScalarInput::kBf16:
      movzx(value.cvt32(), word[act + k * 2 + static_cast<uint32_t>(formats::bf16_act_layout(spec.k).values)]);
      shl(value.cvt32(), 16);
      movd(xmm1, value.cvt32());
      break;
    }
  }
};

} // namespace

std::vector<uint8_t> scalar_kernel(const ScalarKernelSpec& spec) {
  const Emitter emitter(spec);
  return {emitter.getCode(), emitter.getCode() + emitter.getSize()};
}

} // namespace cortiq::test

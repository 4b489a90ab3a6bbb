// RUN: cortiq-opt %s --kernel-choose-path=bf16 --kernel-plan-memory --kernel-dedupe | FileCheck %s
// RUN: cortiq-opt %s --kernel-choose-path="bf16 path=b=fused" --kernel-dedupe | FileCheck %s --check-prefix=SOME
// RUN: cortiq-opt %s --kernel-choose-path --kernel-dedupe | FileCheck %s --check-prefix=SAME

// Asked for, prompts are multiplied on tiles of bf16, however few tokens they have: the kernel reads what stands behind the records that kernels
// for a few tokens read, so all buffers of such records hold both. Matrices of f32 activations stay as they are.

// CHECK: kernel.define @gemv_f32_q8a_q8_0_r16_k512_1x16_amx {{.*}}act = q8a
// CHECK: kernel.define @gemm_f32_bf16_q8_0_r16_k512_512x16_amx {{.*}}tile = 512x16, act = q8a_bf16{{.*}} {from_tokens = 1 : i64}
// CHECK-NOT: kernel.define {{.*}}_256x
// CHECK: kernel.alloc {{.*}}: !kernel.buffer<q8a_bf16, 512>
// CHECK: kernel.alloc {{.*}}: !kernel.buffer<f32, 512>
// CHECK: kernel.call @a(
// CHECK-SAME: act = q8a,
// CHECK-SAME: kernel.path = #kernel.path<bf16, from = 1, fused = 0, materialised = 0, why = "the target multiplies matrices of bf16, which prompts may take">
// CHECK: kernel.call @c(
// CHECK-SAME: kernel.path = #kernel.path<fused

// SOME: kernel.call @a(
// SOME-SAME: kernel.path = #kernel.path<bf16,
// SOME: kernel.call @b(
// SOME-SAME: kernel.path = #kernel.path<fused, {{.*}} why = "asked for">

// SAME-NOT: bf16,
// SAME: !kernel.buffer<q8a, 512>
// SAME: kernel.call @a(
// SAME-SAME: kernel.path = #kernel.path<tiles
#target = #cmf.target<name = "amx", features = ["amx_bf16", "amx_int8"], vector_bytes = 64, token_tiles = [1, 2, 4, 8, 256], l1 = 49152, l2 = 2097152, cores = 1>
module attributes {cmf.target = #target} {
  kernel.weight @a q8_0 r16 32 x 512
  kernel.weight @b q8_0 r16 32 x 512
  kernel.weight @c f16 r16 32 x 512
  kernel.program @program {
    %x = kernel.alloc {input} : !kernel.buffer<q8a, 512>
    %w = kernel.alloc {input} : !kernel.buffer<f32, 512>
    %y = kernel.alloc : !kernel.buffer<f32, 32>
    %v = kernel.alloc : !kernel.buffer<f32, 32>
    %z = kernel.alloc : !kernel.buffer<f32, 32>
    kernel.stage "products" {
      kernel.matmul {
        kernel.call @a(%x) -> %y <q8_0, r16, k = 512, act = q8a, isa = "amx"> : (!kernel.buffer<q8a, 512>) -> !kernel.buffer<f32, 32>
        kernel.call @b(%x) -> %v <q8_0, r16, k = 512, act = q8a, isa = "amx"> : (!kernel.buffer<q8a, 512>) -> !kernel.buffer<f32, 32>
        kernel.call @c(%w) -> %z <f16, r16, k = 512, act = f32, isa = "amx"> : (!kernel.buffer<f32, 512>) -> !kernel.buffer<f32, 32>
      }
    }
    kernel.return %y : !kernel.buffer<f32, 32>
  }
}

// RUN: cortiq-opt %s --kernel-dedupe | FileCheck %s
// RUN: cortiq-opt %s --kernel-dedupe --kernel-dedupe | FileCheck %s

// Two matrices of one form share their kernels; the second has a short last group of 4 rows besides. What no call uses any
// longer is gone.

// CHECK-NOT: @stale
// CHECK: kernel.define @gemv_f32_f32_q8_0_r16_k32_1x16_v3 <q8_0, r16, k = 32, tile = 1x16, act = f32, isa = "x86-64-v3">
// CHECK-NEXT: kernel.define @gemm_f32_f32_q8_0_r16_k32_2x16_v3 <q8_0, r16, k = 32, tile = 2x16, act = f32, isa = "x86-64-v3">
// CHECK-NEXT: kernel.define @gemv_f32_f32_q8_0_r16_k32_1x4_v3 <q8_0, r16, k = 32, tile = 1x4, act = f32, isa = "x86-64-v3">
// CHECK-NEXT: kernel.define @gemm_f32_f32_q8_0_r16_k32_2x4_v3 <q8_0, r16, k = 32, tile = 2x4, act = f32, isa = "x86-64-v3">
// CHECK-NOT: kernel.define
// CHECK: kernel.call @a({{.*}} kernels [@gemv_f32_f32_q8_0_r16_k32_1x16_v3, @gemm_f32_f32_q8_0_r16_k32_2x16_v3] tails []
// CHECK: kernel.call @b({{.*}} kernels [@gemv_f32_f32_q8_0_r16_k32_1x16_v3, @gemm_f32_f32_q8_0_r16_k32_2x16_v3] tails [@gemv_f32_f32_q8_0_r16_k32_1x4_v3, @gemm_f32_f32_q8_0_r16_k32_2x4_v3]
#target = #cmf.target<name = "x86-64-v3", features = ["avx2"], vector_bytes = 32, token_tiles = [1, 2], l1 = 32768, l2 = 262144, cores = 1>
module attributes {cmf.target = #target} {
  kernel.weight @a q8_0 r16 32 x 32
  kernel.weight @b q8_0 r16 20 x 32
  kernel.define @stale <q8_0, r16, k = 64, tile = 1x16, act = f32, isa = "x86-64-v3">
  kernel.program @program {
    %x = kernel.alloc {input} : !kernel.buffer<f32, 32>
    %y = kernel.alloc : !kernel.buffer<f32, 32>
    %z = kernel.alloc : !kernel.buffer<f32, 20>
    kernel.stage "products" {
      kernel.matmul {
        kernel.call @a(%x) -> %y <q8_0, r16, k = 32, act = f32, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 32>
        kernel.call @b(%x) -> %z <q8_0, r16, k = 32, act = f32, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 20>
      }
    }
    kernel.return %y : !kernel.buffer<f32, 32>
  }
}

// RUN: cortiq-opt %s --kernel-choose-path --kernel-dedupe | FileCheck %s
// RUN: cortiq-opt %s --kernel-choose-path=path=fused --kernel-dedupe | FileCheck %s --check-prefix=FUSED

// A target that multiplies matrices of int8 has one kernel for many tokens, from two tiles of four on, for the `fast`
// arm; f32 activations stay with those for a few.

// CHECK: kernel.define @gemm_f32_q8a_q8_0_r16_k512_256x16_i8mm {{.*}}tile = 256x16{{.*}} {from_tokens = 8 : i64}
// CHECK-NOT: kernel.define {{.*}}_256x
// CHECK: kernel.call @a(
// CHECK-SAME: kernel.path = #kernel.path<tiles, from = 8, fused = 0, materialised = 0, why = "the target multiplies matrices of int8">
// CHECK: kernel.call @b(
// CHECK-SAME: kernel.path = #kernel.path<fused, from = 0, {{.*}} why = "no costs were measured for this codec, arm and target">
// FUSED-NOT: kernel.define {{.*}}_256x
#target = #cmf.target<name = "i8mm", features = ["i8mm"], vector_bytes = 16, token_tiles = [1, 2, 4, 256], l1 = 65536, l2 = 1048576, cores = 1>
module attributes {cmf.target = #target} {
  kernel.weight @a q8_0 r16 32 x 512
  kernel.weight @b f16 r16 32 x 512
  kernel.program @program {
    %x = kernel.alloc {input} : !kernel.buffer<q8a, 512>
    %w = kernel.alloc {input} : !kernel.buffer<f32, 512>
    %y = kernel.alloc : !kernel.buffer<f32, 32>
    %z = kernel.alloc : !kernel.buffer<f32, 32>
    kernel.stage "products" {
      kernel.matmul {
        kernel.call @a(%x) -> %y <q8_0, r16, k = 512, act = q8a, isa = "i8mm"> : (!kernel.buffer<q8a, 512>) -> !kernel.buffer<f32, 32>
        kernel.call @b(%w) -> %z <f16, r16, k = 512, act = f32, isa = "i8mm"> : (!kernel.buffer<f32, 512>) -> !kernel.buffer<f32, 32>
      }
    }
    kernel.return %y : !kernel.buffer<f32, 32>
  }
}

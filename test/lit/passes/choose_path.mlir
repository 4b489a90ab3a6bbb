// RUN: cortiq-opt %s --kernel-choose-path --kernel-dedupe | FileCheck %s --check-prefixes=CHECK,AUTO
// RUN: cortiq-opt %s --kernel-choose-path=path=fused --kernel-dedupe | FileCheck %s --check-prefixes=CHECK,FUSED
// RUN: cortiq-opt %s --kernel-choose-path=room=4096 --kernel-dedupe | FileCheck %s --check-prefixes=CHECK,SHORT
// RUN: cortiq-opt %s --kernel-choose-path=path=fused,b*=materialised --kernel-dedupe | FileCheck %s --check-prefixes=CHECK,SOME
// RUN: not cortiq-opt %s --kernel-choose-path=path=quick 2>&1 | FileCheck %s --check-prefix=WRONG

// Codebooks cost much to decode: many tokens share one decoding where that was measured to be quicker, unless told
// otherwise or short of memory. Q8_0 costs next to nothing to decode.

// WRONG: path is auto, fused, materialised or tiles, not 'quick'

// AUTO: kernel.define @gemm_f32_q8a_iq2_xxs_r16_k512_256x16_v3 {{.*}}tile = 256x16{{.*}} {from_tokens = 8 : i64}
// AUTO-NOT: kernel.define {{.*}}_256x
// FUSED-NOT: kernel.define {{.*}}_256x
// SHORT-NOT: kernel.define {{.*}}_256x
// SOME-NOT: kernel.define {{.*}}iq2_xxs{{.*}}_256x
// SOME: kernel.define @gemm_f32_q8a_q8_0_r16_k512_256x16_v3 {{.*}} {from_tokens = 8 : i64}

// CHECK: kernel.call @a(
// AUTO-SAME: @gemm_f32_q8a_iq2_xxs_r16_k512_256x16_v3] tails []
// AUTO-SAME: kernel.path = #kernel.path<materialised, from = 8, fused = {{[0-9]+}}, materialised = {{[0-9]+}}, why = "decoding costs
// FUSED-SAME: kernel.path = #kernel.path<fused, from = 0, fused = 0, materialised = 0, why = "asked for">
// SHORT-SAME: kernel.path = #kernel.path<fused, from = 0, {{.*}} why = "a decoded row group of 16448 bytes exceeds the 4096 that a worker may take">
// SOME-SAME: kernel.path = #kernel.path<fused,
// CHECK: kernel.call @b(
// AUTO-SAME: kernel.path = #kernel.path<fused, from = 0, fused = {{[0-9]+}}, materialised = {{[0-9]+}}, why = "decoding once saves too little
// SOME-SAME: @gemm_f32_q8a_q8_0_r16_k512_256x16_v3] tails []
// SOME-SAME: kernel.path = #kernel.path<materialised, from = 8, {{.*}} why = "asked for">
#target = #cmf.target<name = "x86-64-v3", features = ["avx2"], vector_bytes = 32, token_tiles = [1, 2, 4], l1 = 32768, l2 = 262144, cores = 1>
module attributes {cmf.target = #target} {
  kernel.weight @a iq2_xxs r16 32 x 512
  kernel.weight @b q8_0 r16 32 x 512
  kernel.program @program {
    %x = kernel.alloc {input} : !kernel.buffer<q8a, 512>
    %y = kernel.alloc : !kernel.buffer<f32, 32>
    %z = kernel.alloc : !kernel.buffer<f32, 32>
    kernel.stage "products" {
      kernel.matmul {
        kernel.call @a(%x) -> %y <iq2_xxs, r16, k = 512, act = q8a, isa = "x86-64-v3"> : (!kernel.buffer<q8a, 512>) -> !kernel.buffer<f32, 32>
        kernel.call @b(%x) -> %z <q8_0, r16, k = 512, act = q8a, isa = "x86-64-v3"> : (!kernel.buffer<q8a, 512>) -> !kernel.buffer<f32, 32>
      }
    }
    kernel.return %y : !kernel.buffer<f32, 32>
  }
}

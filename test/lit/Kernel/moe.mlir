// The stages of a mixture of experts print as they parse.
// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s

kernel.weight @bias f32 verbatim 1 x 3
kernel.weight @g0 q4_0 r16 20 x 32
kernel.weight @g1 q8_2f r16 16 x 32
kernel.weight @g2 f16 r16 8 x 32
kernel.define @gemv_f32_q8a_q4_0_r16_k32_1x16_v3 <q4_0, r16, k = 32, tile = 1x16, act = q8a, isa = "x86-64-v3">
kernel.define @gemv_f32_q8a_q4_0_r16_k32_1x4_v3 <q4_0, r16, k = 32, tile = 1x4, act = q8a, isa = "x86-64-v3">

// CHECK-LABEL: kernel.program @program
kernel.program @program {
  // CHECK: kernel.alloc : !kernel.buffer<i32, 12>
  %plan = kernel.alloc : !kernel.buffer<i32, 12>
  %l = kernel.alloc : !kernel.buffer<f32, 3>
  %ids = kernel.alloc : !kernel.buffer<i32, 2>
  %w = kernel.alloc : !kernel.buffer<f32, 2>
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %q = kernel.alloc : !kernel.buffer<q8a, 32>
  // CHECK: kernel.alloc : !kernel.buffer<f32, 32, records = 2>
  %px = kernel.alloc : !kernel.buffer<f32, 32, records = 2>
  %pq = kernel.alloc : !kernel.buffer<q8a, 32, records = 2>
  %ps = kernel.alloc : !kernel.buffer<q8a, 32, records = 2>
  %g = kernel.alloc : !kernel.buffer<f32, 20, records = 2>
  %a = kernel.alloc : !kernel.buffer<q8a, 20, records = 2>
  %sg = kernel.alloc : !kernel.buffer<f32, 1>
  kernel.stage "route" {
    // CHECK: kernel.moe_route %{{.*}} <sigmoid> bias(@bias) scales(@bias) -> %{{.*}}, %{{.*}} {groups = 3 : i64, groups_used = 2 : i64, norm_epsilon = 5.000000e-01 : f64, normalize, scale = 2.500000e+00 : f64} : !kernel.buffer<f32, 3>, !kernel.buffer<i32, 2>, !kernel.buffer<f32, 2>
    kernel.moe_route %l <sigmoid> bias(@bias) scales(@bias) -> %ids, %w {normalize, norm_epsilon = 0.5 : f64, scale = 2.5 : f64, groups = 3 : i64, groups_used = 2 : i64}
      : !kernel.buffer<f32, 3>, !kernel.buffer<i32, 2>, !kernel.buffer<f32, 2>
    // CHECK: kernel.moe_plan %{{.*}} -> %{{.*}} {experts = 3 : i64} : !kernel.buffer<i32, 2>, !kernel.buffer<i32, 12>
    kernel.moe_plan %ids -> %plan {experts = 3 : i64} : !kernel.buffer<i32, 2>, !kernel.buffer<i32, 12>
    // CHECK: kernel.moe_gather %{{.*}} f32(%{{.*}} : !kernel.buffer<f32, 32>) q8a(%{{.*}} : !kernel.buffer<q8a, 32>) out(%{{.*}} : !kernel.buffer<f32, 32, records = 2>) act(%{{.*}} : !kernel.buffer<q8a, 32, records = 2>) {experts = 3 : i64} : !kernel.buffer<i32, 12>
    kernel.moe_gather %plan f32(%x : !kernel.buffer<f32, 32>) q8a(%q : !kernel.buffer<q8a, 32>) out(%px : !kernel.buffer<f32, 32, records = 2>)
      act(%pq : !kernel.buffer<q8a, 32, records = 2>) {experts = 3 : i64} : !kernel.buffer<i32, 12>
    // CHECK: kernel.moe_gather {{.*}} {column_scales = [unit, @g1, unit], experts = 3 : i64}
    kernel.moe_gather %plan f32(%x : !kernel.buffer<f32, 32>) act(%ps : !kernel.buffer<q8a, 32, records = 2>)
      {column_scales = [unit, @g1, unit], experts = 3 : i64} : !kernel.buffer<i32, 12>
  }
  kernel.stage "experts" {
    // CHECK: kernel.moe_matmul %{{.*}} gates(%{{.*}} : !kernel.buffer<q8a, 20, records = 2>) {
    // CHECK-NEXT: kernel.expert @g0(%{{.*}}) token(%{{.*}} : !kernel.buffer<q8a, 32>) -> %{{.*}} <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3"> kernels [@gemv_f32_q8a_q4_0_r16_k32_1x16_v3] tails [@gemv_f32_q8a_q4_0_r16_k32_1x4_v3] : (!kernel.buffer<q8a, 32, records = 2>) -> !kernel.buffer<f32, 20, records = 2>
    kernel.moe_matmul %plan gates(%a : !kernel.buffer<q8a, 20, records = 2>) {
      kernel.expert @g0(%pq) token(%q : !kernel.buffer<q8a, 32>) -> %g <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3">
        kernels [@gemv_f32_q8a_q4_0_r16_k32_1x16_v3] tails [@gemv_f32_q8a_q4_0_r16_k32_1x4_v3]
        : (!kernel.buffer<q8a, 32, records = 2>) -> !kernel.buffer<f32, 20, records = 2>
      kernel.expert @g1(%ps) -> %g <q8_2f, r16, k = 32, act = q8a, isa = "x86-64-v3"> : (!kernel.buffer<q8a, 32, records = 2>) -> !kernel.buffer<f32, 20, records = 2>
      kernel.expert @g2(%px) -> %g <f16, r16, k = 32, act = f32, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32, records = 2>) -> !kernel.buffer<f32, 20, records = 2>
    } : !kernel.buffer<i32, 12>
  }
  kernel.stage "gate" {
    // CHECK: kernel.moe_glu silu %{{.*}}, %{{.*}}, %{{.*}} act(%{{.*}} : !kernel.buffer<q8a, 20, records = 2>) {widths = array<i64: 20, 16, 8>} : !kernel.buffer<i32, 12>, !kernel.buffer<f32, 20, records = 2>, !kernel.buffer<f32, 20, records = 2>
    kernel.moe_glu silu %plan, %g, %g act(%a : !kernel.buffer<q8a, 20, records = 2>) {widths = array<i64: 20, 16, 8>}
      : !kernel.buffer<i32, 12>, !kernel.buffer<f32, 20, records = 2>, !kernel.buffer<f32, 20, records = 2>
  }
  kernel.stage "combine" {
    // CHECK: kernel.moe_combine %{{.*}}, %{{.*}}, %{{.*}} shared(%{{.*}} : !kernel.buffer<f32, 32>) shared_gate(%{{.*}} : !kernel.buffer<f32, 1>) residual(%{{.*}} : !kernel.buffer<f32, 32>) -> %{{.*}} {experts = 3 : i64} : !kernel.buffer<i32, 12>, !kernel.buffer<f32, 2>, !kernel.buffer<f32, 32, records = 2>, !kernel.buffer<f32, 32>
    kernel.moe_combine %plan, %w, %px shared(%x : !kernel.buffer<f32, 32>) shared_gate(%sg : !kernel.buffer<f32, 1>) residual(%x : !kernel.buffer<f32, 32>) -> %x
      {experts = 3 : i64} : !kernel.buffer<i32, 12>, !kernel.buffer<f32, 2>, !kernel.buffer<f32, 32, records = 2>, !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

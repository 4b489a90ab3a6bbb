// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s
// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel --kernel-merge-stages --kernel-plan-memory --kernel-dedupe --kernel-verify-program | FileCheck %s --check-prefix=STAGES

// Experts of three codecs and two widths, with a shared expert. Plain inputs are gathered once for both roles; a weight
// with column scales has an input of its own. The router reads floats in the fast arm too.
// CHECK: kernel.weight @r q8_0 r16 3 x 32
// CHECK: kernel.stage "r+sg+su"
// CHECK: kernel.call @r(%[[X:[a-z0-9]*]]) -> %[[L:.*]] <q8_0, r16, k = 32, act = f32
// CHECK: kernel.call @sg(%[[XQ:[a-z0-9]*]]) -> %{{.*}} <q8_0, r16, k = 32, act = q8a
// CHECK: kernel.call @one(%[[X]]) -> %[[SG:.*]] <f16
// CHECK: kernel.moe_route %[[L]] <softmax> -> %[[I:.*]], %[[W:.*]] {normalize} : !kernel.buffer<f32, 3>, !kernel.buffer<i32, 2>, !kernel.buffer<f32, 2>
// CHECK: kernel.moe_plan %[[I]] -> %[[P:.*]] {experts = 3 : i64} : !kernel.buffer<i32, 2>, !kernel.buffer<i32, 12>
// CHECK: kernel.stage "gather"
// CHECK-NEXT: kernel.moe_gather %[[P]] f32(%[[X]] : !kernel.buffer<f32, 32>) q8a(%[[XQ]] : !kernel.buffer<q8a, 32>) out(%[[PX:.*]] : !kernel.buffer<f32, 32, records = 2>) act(%[[PQ:.*]] : !kernel.buffer<q8a, 32, records = 2>)
// CHECK-NEXT: kernel.moe_gather %[[P]] f32(%[[X]] : !kernel.buffer<f32, 32>) act(%[[PS:.*]] : !kernel.buffer<q8a, 32, records = 2>) {column_scales = [unit, @g1, unit], experts = 3 : i64}
// CHECK: kernel.stage "experts' gate_proj+up_proj"
// CHECK-NEXT: kernel.moe_matmul %[[P]] gates(%[[A:.*]], %[[AQ:[a-z0-9]*]] : !kernel.buffer<f32, 32, records = 2>, !kernel.buffer<q8a, 32, records = 2>) {
// CHECK-NEXT: kernel.expert @g0(%[[PQ]]) token(%[[XQ]] : !kernel.buffer<q8a, 32>) bias(@b) -> %[[G:.*]] <q4_0
// CHECK-NEXT: kernel.expert @g1(%[[PS]]) bias(@b) -> %[[G]] <q8_2f, r16, k = 32, act = q8a
// CHECK-NEXT: kernel.expert @g2(%[[PX]]) token(%[[X]] : !kernel.buffer<f32, 32>) bias(@b2) -> %[[G]] <f16
// CHECK: kernel.moe_matmul %[[P]] {
// CHECK: kernel.moe_glu silu %[[P]], %[[G]], %{{.*}} out(%[[A]] : !kernel.buffer<f32, 32, records = 2>) act(%[[AQ]] : !kernel.buffer<q8a, 32, records = 2>) {widths = array<i64: 32, 32, 16>}
// CHECK: kernel.moe_combine %[[P]], %[[W]], %{{.*}} shared(%{{.*}} : !kernel.buffer<f32, 32>) shared_gate(%[[SG]] : !kernel.buffer<f32, 1>) residual(%{{.*}} : !kernel.buffer<f32, 32>) -> %{{.*}} {experts = 3 : i64}

// The shared expert costs no stage of its own.
// STAGES-COUNT-10: kernel.stage
// STAGES-NOT: kernel.stage
module attributes {cmf.model = {architecture = "test"}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
    %e = cmf.weight "e" : !cmf.weight<64x32, q8_0>
    %r = cmf.weight "r" : !cmf.weight<3x32, q8_0>
    %g0 = cmf.weight "g0" : !cmf.weight<32x32, q4_0>
    %g1 = cmf.weight "g1" : !cmf.weight<32x32, q8_2f>
    %g2 = cmf.weight "g2" : !cmf.weight<16x32, f16>
    %d = cmf.weight "d" : !cmf.weight<32x32, q4_0>
    %d2 = cmf.weight "d2" : !cmf.weight<32x16, f16>
    %b = cmf.weight "b" : !cmf.weight<32, f32>
    %b2 = cmf.weight "b2" : !cmf.weight<16, f32>
    %sg = cmf.weight "sg" : !cmf.weight<32x32, q8_0>
    %su = cmf.weight "su" : !cmf.weight<32x32, q8_0>
    %one = cmf.weight "one" : !cmf.weight<1x32, f16>
    %u = cmf.weight "u" : !cmf.weight<32x32, q4_0>
    %h = cmf.embed %ids, %e : tensor<?xi32>, !cmf.weight<64x32, q8_0>
    %x = cmf.rms_norm %h {eps = 0.5 : f64} : tensor<?x32xf32>
    %y = cmf.fused_moe %x route(%x) by(%r) gate(%g0, %g1, %g2) up(%u, %u, %g2) down(%d, %d, %d2)
      gate_biases(%b, %b, %b2) shared(%sg, %su, %d) shared_gate(%one) residual(%h)
      {activation = #cmf.activation<silu>, routing = #cmf.routing<top_k = 2, scoring = softmax, norm_epsilon = 0.0 : f64>}
      : (tensor<?x32xf32>, tensor<?x32xf32>, !cmf.weight<3x32, q8_0>, !cmf.weight<32x32, q4_0>, !cmf.weight<32x32, q8_2f>, !cmf.weight<16x32, f16>,
         !cmf.weight<32x32, q4_0>, !cmf.weight<32x32, q4_0>, !cmf.weight<16x32, f16>, !cmf.weight<32x32, q4_0>, !cmf.weight<32x32, q4_0>,
         !cmf.weight<32x16, f16>, !cmf.weight<32, f32>, !cmf.weight<32, f32>, !cmf.weight<16, f32>, !cmf.weight<32x32, q8_0>, !cmf.weight<32x32, q8_0>,
         !cmf.weight<32x32, q4_0>, !cmf.weight<1x32, f16>, tensor<?x32xf32>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// RUN: cortiq-opt %s --cmf-split-low-rank | FileCheck %s

// x goes through the weights that stay and through all first factors in one product, then each result through its
// second factor, which takes the rows. The first path adds bias and residual, the second the sum of the first.
// CHECK-LABEL: func.func @parts
// CHECK-DAG: %[[V1:.*]] = cmf.weight "l.0.q_v1.weight" {source = #cmf.source<file = 0, offset = 64, bytes = 624, low_rank = <paths = 2, rank = 8, path = 1>>} : !cmf.weight<8x32, blr_v>
// CHECK-DAG: %[[V2:.*]] = cmf.weight "l.0.q_v2.weight" {{.*}}path = 2{{.*}} : !cmf.weight<8x32, blr_v>
// CHECK: %[[FIRST:.*]]:3 = cmf.fused_matmul %arg0 weights(%[[V1]], %[[V2]], %arg1) biases(%arg2) {biased = array<i1: false, false, true>}
// CHECK: %[[U1:.*]] = cmf.weight "l.0.q_u1.weight" {rows = #cmf.rows<of = 64, first = 16>, source = {{.*}}path = 1{{.*}}} : !cmf.weight<16x8, blr_u>
// CHECK: %[[SUM:.*]] = cmf.fused_matmul %[[FIRST]]#0 weights(%[[U1]]) biases(%arg3)
// CHECK: %[[U2:.*]] = cmf.weight "l.0.q_u2.weight"
// CHECK: %[[Y:.*]] = cmf.fused_matmul %[[FIRST]]#1 weights(%[[U2]]) residual(%[[SUM]])
// CHECK: return %[[Y]], %[[FIRST]]#2
func.func @parts(%x: tensor<?x32xf32>, %k: !cmf.weight<8x32, q8_0>, %bk: !cmf.weight<8, f32>, %bq: !cmf.weight<16, f32>)
    -> (tensor<?x16xf32>, tensor<?x8xf32>) {
  %q = cmf.weight "l.0.q.weight" {source = #cmf.source<file = 0, offset = 64, bytes = 624, low_rank = #cmf.low_rank<paths = 2, rank = 8>>, rows = #cmf.rows<of = 64, first = 16>} : !cmf.weight<16x32, blr>
  %y:2 = cmf.fused_matmul %x weights(%q, %k) biases(%bq, %bk) {biased = array<i1: true, true>}
    : tensor<?x32xf32> weights(!cmf.weight<16x32, blr>, !cmf.weight<8x32, q8_0>) biases(!cmf.weight<16, f32>, !cmf.weight<8, f32>)
  return %y#0, %y#1 : tensor<?x16xf32>, tensor<?x8xf32>
}

// One path: the residual joins at the end. What an embedding reads stays whole.
// CHECK-LABEL: func.func @tied
// CHECK: %[[W:.*]] = cmf.weight "w" {{.*}} : !cmf.weight<32x32, blr>
// CHECK: %[[X:.*]] = cmf.embed %arg0, %[[W]]
// CHECK: %[[T:.*]] = cmf.fused_matmul %[[X]] weights(%{{.*}}) : tensor<?x32xf32> weights(!cmf.weight<8x32, blr_v>)
// CHECK: cmf.fused_matmul %[[T]] weights(%{{.*}}) residual(%[[X]])
func.func @tied(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
  %w = cmf.weight "w" {source = #cmf.source<file = 0, offset = 0, bytes = 224, low_rank = #cmf.low_rank<paths = 1, rank = 8>>} : !cmf.weight<32x32, blr>
  %x = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<32x32, blr>
  %y = cmf.fused_matmul %x weights(%w) residual(%x) : tensor<?x32xf32> weights(!cmf.weight<32x32, blr>) residual(tensor<?x32xf32>)
  return %y : tensor<?x32xf32>
}

// RUN: cortiq-opt %s --cmf-fix-task="task=deep" | FileCheck %s
// RUN: cortiq-opt %s --cmf-fix-task="task=skip" | FileCheck %s --check-prefix=SKIP
// RUN: not cortiq-opt %s --cmf-fix-task="task=none" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// Neurons 0 and 3 of four are on: their rows of gate and up stay, and their columns go to where down reads them. Query
// head 1, the only one of its group, is off: so are its keys and values.
// CHECK: fixed_task = "deep", masks = []
// CHECK: %[[Q:.*]] = cmf.weight "q" {rows = #cmf.rows<of = 16, picks = [0, 1, 2, 3, 4, 5, 6, 7]>} : !cmf.weight<8x32, f32>
// CHECK: cmf.attention {{.*}}heads = 1 : i64, kv_heads = 1 : i64{{.*}} -> tensor<?x8xf32>
// CHECK: cmf.place %{{.*}} {from = array<i64: 0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1>} : tensor<?x8xf32> -> tensor<?x16xf32>
// CHECK: cmf.weight "gate" {rows = #cmf.rows<of = 4, picks = [0, 3]>} : !cmf.weight<2x32, f32>
// CHECK: cmf.weight "up" {rows = #cmf.rows<of = 4, picks = [0, 3]>} : !cmf.weight<2x32, f32>
// CHECK: cmf.glu silu(%{{.*}}, %{{.*}}) : tensor<?x2xf32>
// CHECK: cmf.place %{{.*}} {from = array<i64: 0, -1, -1, 1>} : tensor<?x2xf32> -> tensor<?x4xf32>
// CHECK-NOT: cmf.mask
// CHECK-NOT: cmf.layer_gate

// The whole layer is off: nothing of it stays.
// SKIP: fixed_task = "skip"
// SKIP: %[[X:.*]] = cmf.embed
// SKIP-NEXT: return %[[X]]

// UNKNOWN: has no task 'none'; it has: deep skip
module attributes {
  cmf.model = {architecture = "llama"},
  cmf.overlay_catalog = {skills = [], masks = [
    {name = "deep", layers = 1 : i64, ffn_rows = 1 : i64, ffn_width = 4 : i64, heads = 2 : i64, ffn = array<i8: 9>, head = array<i8: 1>, gates = array<i8: 1>},
    {name = "skip", layers = 1 : i64, ffn_rows = 1 : i64, ffn_width = 4 : i64, heads = 2 : i64, ffn = array<i8: 15>, head = array<i8: 3>, gates = array<i8: 0>}]}
} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
    %we = cmf.weight "embed" : !cmf.weight<64x32, f32>
    %wq = cmf.weight "q" : !cmf.weight<16x32, f32>
    %wk = cmf.weight "k" : !cmf.weight<16x32, f32>
    %wv = cmf.weight "v" : !cmf.weight<16x32, f32>
    %wo = cmf.weight "o" : !cmf.weight<32x16, f32>
    %wg = cmf.weight "gate" : !cmf.weight<4x32, f32>
    %wu = cmf.weight "up" : !cmf.weight<4x32, f32>
    %wd = cmf.weight "down" : !cmf.weight<32x4, f32>
    %x = cmf.embed %ids, %we : tensor<?xi32>, !cmf.weight<64x32, f32>
    %dq = cmf.dequant %wq : !cmf.weight<16x32, f32>
    %q = cmf.matmul %x, %dq : tensor<?x32xf32>, tensor<16x32xf32>
    %dk = cmf.dequant %wk : !cmf.weight<16x32, f32>
    %k = cmf.matmul %x, %dk : tensor<?x32xf32>, tensor<16x32xf32>
    %dv = cmf.dequant %wv : !cmf.weight<16x32, f32>
    %v = cmf.matmul %x, %dv : tensor<?x32xf32>, tensor<16x32xf32>
    %a = cmf.attention %q, %k, %v {layer = 0 : i64, heads = 2 : i64, kv_heads = 2 : i64, head_dim = 8 : i64, v_dim = 8 : i64,
      scale = 0.25 : f64, cmf.mask = #cmf.mask<heads, layer = 0, first = 0, group = 8>}
      : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x16xf32>
    %do = cmf.dequant %wo : !cmf.weight<32x16, f32>
    %o = cmf.matmul %a, %do : tensor<?x16xf32>, tensor<32x16xf32>
    %h = cmf.add %x, %o : tensor<?x32xf32>
    %dg = cmf.dequant %wg : !cmf.weight<4x32, f32>
    %g = cmf.matmul %h, %dg : tensor<?x32xf32>, tensor<4x32xf32>
    %du = cmf.dequant %wu : !cmf.weight<4x32, f32>
    %u = cmf.matmul %h, %du : tensor<?x32xf32>, tensor<4x32xf32>
    %e = cmf.glu silu(%g, %u) {cmf.mask = #cmf.mask<ffn, layer = 0, first = 0, group = 1>} : tensor<?x4xf32>
    %dd = cmf.dequant %wd : !cmf.weight<32x4, f32>
    %f = cmf.matmul %e, %dd : tensor<?x4xf32>, tensor<32x4xf32>
    %r = cmf.add %h, %f : tensor<?x32xf32>
    %y = cmf.layer_gate %x, %r {layer = 0 : i64} : tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

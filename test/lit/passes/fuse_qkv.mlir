// RUN: cortiq-opt %s --cmf-fuse-qkv | FileCheck %s

#rope = #cmf.rope<inverse_frequencies = [1.0, 0.1], magnitude = 1.0 : f32>

// The weights of keys and values move up; each part keeps its codec and its bias.
// CHECK-LABEL: func.func @attention
// CHECK: %[[V:.*]] = cmf.weight "v"
// CHECK: %[[QKV:.*]]:3 = cmf.fused_matmul %arg0 weights(%arg1, %arg2, %[[V]]) biases(%arg3) {biased = array<i1: false, true, false>}
// CHECK-SAME: weights(!cmf.weight<16x32, q8_0>, !cmf.weight<8x32, q4_0>, !cmf.weight<8x32, f16>)
// CHECK-NOT: cmf.fused_matmul
// CHECK: cmf.rms_norm %[[QKV]]#0
// CHECK: cmf.rope %[[QKV]]#1
// CHECK: cmf.attention %{{.*}}, %{{.*}}, %[[QKV]]#2
func.func @attention(%x: tensor<?x32xf32>, %q: !cmf.weight<16x32, q8_0>, %k: !cmf.weight<8x32, q4_0>,
                     %b: !cmf.weight<8, f32>, %n: !cmf.weight<8, f32>) -> tensor<?x16xf32> {
  %0 = cmf.fused_matmul %x weights(%q) : tensor<?x32xf32> weights(!cmf.weight<16x32, q8_0>)
  %1 = cmf.rms_norm %0, %n {eps = 0.0 : f64, group = 8 : i64} : tensor<?x16xf32>, !cmf.weight<8, f32>
  %2 = cmf.rope %1 {head_dim = 8 : i64, rope = #rope} : tensor<?x16xf32>
  %3 = cmf.fused_matmul %x weights(%k) biases(%b) {biased = array<i1: true>} : tensor<?x32xf32> weights(!cmf.weight<8x32, q4_0>) biases(!cmf.weight<8, f32>)
  %4 = cmf.rope %3 {head_dim = 8 : i64, rope = #rope} : tensor<?x8xf32>
  %v = cmf.weight "v" : !cmf.weight<8x32, f16>
  %5 = cmf.fused_matmul %x weights(%v) : tensor<?x32xf32> weights(!cmf.weight<8x32, f16>)
  %6 = cmf.attention %2, %4, %5 {layer = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
    : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x16xf32>
  return %6 : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @other_input
// CHECK-COUNT-3: cmf.fused_matmul
func.func @other_input(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %w: !cmf.weight<8x32, q8_0>) -> tensor<?x8xf32> {
  %0 = cmf.fused_matmul %x weights(%w) : tensor<?x32xf32> weights(!cmf.weight<8x32, q8_0>)
  %1 = cmf.fused_matmul %y weights(%w) : tensor<?x32xf32> weights(!cmf.weight<8x32, q8_0>)
  %2 = cmf.fused_matmul %y weights(%w) : tensor<?x32xf32> weights(!cmf.weight<8x32, q8_0>)
  %3 = cmf.attention %0, %1, %2 {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
    : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %3 : tensor<?x8xf32>
}

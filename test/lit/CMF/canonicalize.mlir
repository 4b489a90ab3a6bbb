// RUN: cortiq-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @scale_by_one
// CHECK-NEXT: return %arg0
func.func @scale_by_one(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = cmf.scale %x {factor = 1.0 : f64} : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @scale_into_embed
// CHECK-NEXT: %[[H:.*]] = cmf.embed %arg0, %arg1 {scale = 3.000000e+00 : f64}
// CHECK-NEXT: return %[[H]]
func.func @scale_into_embed(%ids: tensor<?xi32>, %w: !cmf.weight<10x8, f32>) -> tensor<?x8xf32> {
  %h = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<10x8, f32>
  %y = cmf.scale %h {factor = 3.0 : f64} : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// The unscaled rows are read too, so they stay.
// CHECK-LABEL: func.func @embed_read_twice
// CHECK: cmf.embed %arg0, %arg1 :
// CHECK-NEXT: cmf.scale
func.func @embed_read_twice(%ids: tensor<?xi32>, %w: !cmf.weight<10x8, f32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %h = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<10x8, f32>
  %y = cmf.scale %h {factor = 3.0 : f64} : tensor<?x8xf32>
  return %h, %y : tensor<?x8xf32>, tensor<?x8xf32>
}

// Two factors are two roundings: they stay apart.
// CHECK-LABEL: func.func @two_factors
// CHECK: cmf.embed %arg0, %arg1 {scale = 2.000000e+00 : f64}
// CHECK-NEXT: cmf.scale %{{.*}} {factor = 3.000000e+00 : f64}
func.func @two_factors(%ids: tensor<?xi32>, %w: !cmf.weight<10x8, f32>) -> tensor<?x8xf32> {
  %h = cmf.embed %ids, %w {scale = 2.0 : f64} : tensor<?xi32>, !cmf.weight<10x8, f32>
  %y = cmf.scale %h {factor = 3.0 : f64} : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// A weight that nothing reads goes; attention has state and stays.
// CHECK-LABEL: func.func @dead
// CHECK-NOT: cmf.weight
// CHECK: cmf.attention
func.func @dead(%q: tensor<?x8xf32>) {
  %w = cmf.weight "unused" : !cmf.weight<8, f32>
  %a = cmf.attention %q, %q, %q {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64,
                                 v_dim = 8 : i64, scale = 1.0 : f64}
    : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

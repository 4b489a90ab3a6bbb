// cmf.concat_heads, cmf.head_matmul and cmf.cluster_logits print as they parse, and their refusals.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @heads
func.func @heads(%a: tensor<?x4xf32>, %b: tensor<?x12xf32>, %c: tensor<?x2xf32>) {
  // CHECK: %[[SHARED:.*]] = cmf.concat_heads %{{.*}}, %{{.*}} {heads = 2 : i64, shared} : tensor<?x4xf32>, tensor<?x12xf32>
  %k = cmf.concat_heads %a, %b {heads = 2 : i64, shared} : tensor<?x4xf32>, tensor<?x12xf32> -> tensor<?x20xf32>
  // CHECK: cmf.concat_heads %{{.*}}, %[[SHARED]] {heads = 2 : i64} : tensor<?x4xf32>, tensor<?x20xf32>
  %q = cmf.concat_heads %a, %k {heads = 2 : i64} : tensor<?x4xf32>, tensor<?x20xf32> -> tensor<?x24xf32>
  %w0 = cmf.weight "w0" : !cmf.weight<3x6, f16>
  %w1 = cmf.weight "w1" : !cmf.weight<3x6, f16>
  // CHECK: %[[Y:.*]] = cmf.head_matmul %{{.*}} weights(%{{.*}}, %{{.*}}) : tensor<?x12xf32> weights(!cmf.weight<3x6, f16>, !cmf.weight<3x6, f16>)
  %y = cmf.head_matmul %b weights(%w0, %w1) : tensor<?x12xf32> weights(!cmf.weight<3x6, f16>, !cmf.weight<3x6, f16>)
  // CHECK: cmf.cluster_logits %[[Y]], %{{.*}} : tensor<?x6xf32>, tensor<?x2xf32>
  %l = cmf.cluster_logits %y, %c : tensor<?x6xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @uneven_heads(%a: tensor<?x4xf32>, %b: tensor<?x12xf32>) {
  // expected-error @below {{has 3 heads, which do not divide 4 and 12 features}}
  %k = cmf.concat_heads %a, %b {heads = 3 : i64} : tensor<?x4xf32>, tensor<?x12xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @other_width(%b: tensor<?x10xf32>) {
  %w0 = cmf.weight "w0" : !cmf.weight<3x6, f16>
  // expected-error @below {{takes 10 features, but its 1 weights have 6 columns each}}
  %y = cmf.head_matmul %b weights(%w0) : tensor<?x10xf32> weights(!cmf.weight<3x6, f16>)
  return
}

// -----

func.func @two_shapes(%b: tensor<?x12xf32>) {
  %w0 = cmf.weight "w0" : !cmf.weight<3x6, f16>
  %w1 = cmf.weight "w1" : !cmf.weight<4x6, f16>
  // expected-error @below {{needs weights of one shape}}
  %y = cmf.head_matmul %b weights(%w0, %w1) : tensor<?x12xf32> weights(!cmf.weight<3x6, f16>, !cmf.weight<4x6, f16>)
  return
}

// -----

func.func @uneven_clusters(%b: tensor<?x12xf32>, %c: tensor<?x5xf32>) {
  // expected-error @below {{has 5 clusters, which do not divide 12 logits}}
  %y = cmf.cluster_logits %b, %c : tensor<?x12xf32>, tensor<?x5xf32>
  return
}

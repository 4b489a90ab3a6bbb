// RUN: cortiq-opt %s --cmf-fuse-norm-residual | FileCheck %s

// The residual joins the product, and the norm reads the sum.
// CHECK-LABEL: func.func @residual
// CHECK-NEXT: %[[H:.*]] = cmf.fused_matmul %arg0 weights(%arg1) residual(%arg0)
// CHECK-NEXT: %[[N:.*]] = cmf.rms_norm %[[H]], %arg2
// CHECK-NEXT: return %[[H]], %[[N]]
func.func @residual(%x: tensor<?x32xf32>, %w: !cmf.weight<32x32, q8_0>, %n: !cmf.weight<32, f32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %0 = cmf.fused_matmul %x weights(%w) : tensor<?x32xf32> weights(!cmf.weight<32x32, q8_0>)
  %1 = cmf.add %x, %0 : tensor<?x32xf32>
  %2 = cmf.rms_norm %1, %n {eps = 0.5 : f64} : tensor<?x32xf32>, !cmf.weight<32, f32>
  return %1, %2 : tensor<?x32xf32>, tensor<?x32xf32>
}

// A sandwich norm stands between product and sum, so the sum joins the next norm.
// CHECK-LABEL: func.func @sandwich
// CHECK: cmf.fused_matmul %arg0 weights(%arg1) :
// CHECK: %[[B:.*]] = cmf.rms_norm
// CHECK: %[[W:.*]] = cmf.weight "next"
// CHECK: %[[S:.+]], %[[N:.+]] = cmf.add_rms_norm %arg0, %[[B]], %[[W]] {eps = 5.000000e-01 : f64, unit_offset}
// CHECK-NEXT: return %[[S]], %[[N]]
func.func @sandwich(%x: tensor<?x32xf32>, %w: !cmf.weight<32x32, q8_0>, %n: !cmf.weight<32, f32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %0 = cmf.fused_matmul %x weights(%w) : tensor<?x32xf32> weights(!cmf.weight<32x32, q8_0>)
  %1 = cmf.rms_norm %0, %n {eps = 0.5 : f64, unit_offset} : tensor<?x32xf32>, !cmf.weight<32, f32>
  %2 = cmf.add %x, %1 : tensor<?x32xf32>
  %m = cmf.weight "next" : !cmf.weight<32, f32>
  %3 = cmf.rms_norm %2, %m {eps = 0.5 : f64, unit_offset} : tensor<?x32xf32>, !cmf.weight<32, f32>
  return %2, %3 : tensor<?x32xf32>, tensor<?x32xf32>
}

// The product itself is read too: neither form applies.
// CHECK-LABEL: func.func @read_twice
// CHECK: cmf.add %
func.func @read_twice(%x: tensor<?x32xf32>, %w: !cmf.weight<32x32, q8_0>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %0 = cmf.fused_matmul %x weights(%w) : tensor<?x32xf32> weights(!cmf.weight<32x32, q8_0>)
  %1 = cmf.add %x, %0 : tensor<?x32xf32>
  return %0, %1 : tensor<?x32xf32>, tensor<?x32xf32>
}

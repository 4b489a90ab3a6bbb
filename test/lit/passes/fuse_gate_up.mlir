// RUN: cortiq-opt %s --cmf-fuse-gate-up | FileCheck %s

// CHECK-LABEL: func.func @gate
// CHECK-NEXT: %[[GU:.*]]:2 = cmf.fused_matmul %arg0 weights(%arg1, %arg2) : tensor<?x256xf32> weights(!cmf.weight<16x256, q4_k>, !cmf.weight<16x256, q6_k>)
// CHECK-NEXT: cmf.glu silu(%[[GU]]#0, %[[GU]]#1)
func.func @gate(%x: tensor<?x256xf32>, %g: !cmf.weight<16x256, q4_k>, %u: !cmf.weight<16x256, q6_k>) -> tensor<?x16xf32> {
  %0 = cmf.fused_matmul %x weights(%u) : tensor<?x256xf32> weights(!cmf.weight<16x256, q6_k>)
  %1 = cmf.fused_matmul %x weights(%g) : tensor<?x256xf32> weights(!cmf.weight<16x256, q4_k>)
  %2 = cmf.glu silu(%1, %0) : tensor<?x16xf32>
  return %2 : tensor<?x16xf32>
}

// One product is gate and up at once: there is nothing to join.
// CHECK-LABEL: func.func @same
// CHECK-NEXT: cmf.fused_matmul %arg0 weights(%arg1) :
func.func @same(%x: tensor<?x256xf32>, %g: !cmf.weight<16x256, q4_k>) -> tensor<?x16xf32> {
  %0 = cmf.fused_matmul %x weights(%g) : tensor<?x256xf32> weights(!cmf.weight<16x256, q4_k>)
  %1 = cmf.glu silu(%0, %0) : tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}

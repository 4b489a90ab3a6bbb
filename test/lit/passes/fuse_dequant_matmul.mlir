// RUN: cortiq-opt %s --cmf-fuse-dequant-matmul | FileCheck %s

// CHECK-LABEL: func.func @linear
// CHECK-NEXT: %[[Y:.*]] = cmf.fused_matmul %arg0 weights(%arg1) : tensor<?x32xf32> weights(!cmf.weight<8x32, q8_0>)
// CHECK-NEXT: return %[[Y]]
func.func @linear(%x: tensor<?x32xf32>, %w: !cmf.weight<8x32, q8_0>) -> tensor<?x8xf32> {
  %d = cmf.dequant %w : !cmf.weight<8x32, q8_0>
  %y = cmf.matmul %x, %d : tensor<?x32xf32>, tensor<8x32xf32>
  return %y : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @biased
// CHECK-NEXT: %[[Y:.*]] = cmf.fused_matmul %arg0 weights(%arg1) biases(%arg2) {biased = array<i1: true>}
// CHECK-NEXT: return %[[Y]]
func.func @biased(%x: tensor<?x32xf32>, %w: !cmf.weight<8x32, q8_0>, %b: !cmf.weight<8, f32>) -> tensor<?x8xf32> {
  %d = cmf.dequant %w : !cmf.weight<8x32, q8_0>
  %y = cmf.matmul %x, %d : tensor<?x32xf32>, tensor<8x32xf32>
  %z = cmf.bias_add %y, %b : tensor<?x8xf32>, !cmf.weight<8, f32>
  return %z : tensor<?x8xf32>
}

// The product without its bias is read as well.
// CHECK-LABEL: func.func @product_read_twice
// CHECK: cmf.fused_matmul %arg0 weights(%arg1) :
// CHECK: cmf.bias_add
func.func @product_read_twice(%x: tensor<?x32xf32>, %w: !cmf.weight<8x32, q8_0>, %b: !cmf.weight<8, f32>)
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %d = cmf.dequant %w : !cmf.weight<8x32, q8_0>
  %y = cmf.matmul %x, %d : tensor<?x32xf32>, tensor<8x32xf32>
  %z = cmf.bias_add %y, %b : tensor<?x8xf32>, !cmf.weight<8, f32>
  return %y, %z : tensor<?x8xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @decoded_read_twice
// CHECK: cmf.dequant
// CHECK: cmf.fused_matmul
func.func @decoded_read_twice(%x: tensor<?x32xf32>, %w: !cmf.weight<8x32, q8_0>) -> (tensor<?x8xf32>, tensor<8x32xf32>) {
  %d = cmf.dequant %w : !cmf.weight<8x32, q8_0>
  %y = cmf.matmul %x, %d : tensor<?x32xf32>, tensor<8x32xf32>
  return %y, %d : tensor<?x8xf32>, tensor<8x32xf32>
}

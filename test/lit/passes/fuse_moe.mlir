// RUN: cortiq-opt %s --cmf-fuse-moe | FileCheck %s

!f16gate = !cmf.weight<16x32, f16>
!f16down = !cmf.weight<32x16, f16>

// Router, choice, experts, the shared expert with its gate, and the residual are one operation.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: %[[Y:.*]] = cmf.fused_moe %arg0 route(%arg0) by(%arg2) gate(%arg3, %arg3) up(%arg3, %arg3) down(%arg4, %arg4) shared(%arg3, %arg3, %arg4) shared_gate(%arg5) residual(%arg1) {activation = #cmf.activation<silu>, routing = #cmf.routing<top_k = 1, scoring = softmax>}
// CHECK-NEXT: return %[[Y]]
func.func @whole(%x: tensor<?x32xf32>, %h: tensor<?x32xf32>, %r: !cmf.weight<2x32, f32>, %g: !f16gate, %d: !f16down,
                 %sg: !cmf.weight<1x32, f16>) -> tensor<?x32xf32> {
  %l = cmf.fused_matmul %x weights(%r) : tensor<?x32xf32> weights(!cmf.weight<2x32, f32>)
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 1, scoring = softmax>} : (tensor<?x2xf32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
  %m = cmf.moe_experts %x, %i, %w gate(%g, %g) up(%g, %g) down(%d, %d) {activation = #cmf.activation<silu>}
    : (tensor<?x32xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !f16gate, !f16gate, !f16gate, !f16gate, !f16down, !f16down) -> tensor<?x32xf32>
  %sa = cmf.fused_matmul %x weights(%g) : tensor<?x32xf32> weights(!f16gate)
  %su = cmf.fused_matmul %x weights(%g) : tensor<?x32xf32> weights(!f16gate)
  %a = cmf.glu silu(%sa, %su) : tensor<?x16xf32>
  %sd = cmf.fused_matmul %a weights(%d) : tensor<?x16xf32> weights(!f16down)
  %sl = cmf.fused_matmul %x weights(%sg) : tensor<?x32xf32> weights(!cmf.weight<1x32, f16>)
  %s = cmf.gate %sd, %sl <sigmoid> : tensor<?x32xf32>, tensor<?x1xf32>
  %f = cmf.add %m, %s : tensor<?x32xf32>
  %y = cmf.add %h, %f : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// The router may read another value than the experts (Gemma 4); a sum that is no shared expert is the residual.
// CHECK-LABEL: func.func @dual
// CHECK-NEXT: cmf.fused_moe %arg0 route(%arg1) by(%arg2) router_bias(%arg5) gate(%arg3, %arg3) up(%arg3, %arg3) down(%arg4, %arg4) residual(%arg1)
// CHECK-NEXT: return
func.func @dual(%x: tensor<?x32xf32>, %h: tensor<?x32xf32>, %r: !cmf.weight<2x32, f32>, %g: !f16gate, %d: !f16down,
                %b: !cmf.weight<2, f32>) -> tensor<?x32xf32> {
  %l = cmf.fused_matmul %h weights(%r) biases(%b) {biased = array<i1: true>} : tensor<?x32xf32> weights(!cmf.weight<2x32, f32>) biases(!cmf.weight<2, f32>)
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 1, scoring = softmax>} : (tensor<?x2xf32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
  %m = cmf.moe_experts %x, %i, %w gate(%g, %g) up(%g, %g) down(%d, %d) {activation = #cmf.activation<silu>}
    : (tensor<?x32xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !f16gate, !f16gate, !f16gate, !f16gate, !f16down, !f16down) -> tensor<?x32xf32>
  %y = cmf.add %m, %h : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// Logits that somebody else reads stay apart.
// CHECK-LABEL: func.func @watched
// CHECK: cmf.moe_route
// CHECK: cmf.moe_experts
func.func @watched(%x: tensor<?x32xf32>, %r: !cmf.weight<2x32, f32>, %g: !f16gate, %d: !f16down) -> (tensor<?x32xf32>, tensor<?x2xf32>) {
  %l = cmf.fused_matmul %x weights(%r) : tensor<?x32xf32> weights(!cmf.weight<2x32, f32>)
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 1, scoring = softmax>} : (tensor<?x2xf32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
  %m = cmf.moe_experts %x, %i, %w gate(%g, %g) up(%g, %g) down(%d, %d) {activation = #cmf.activation<silu>}
    : (tensor<?x32xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !f16gate, !f16gate, !f16gate, !f16gate, !f16down, !f16down) -> tensor<?x32xf32>
  return %m, %l : tensor<?x32xf32>, tensor<?x2xf32>
}

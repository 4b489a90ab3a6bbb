// The operations of a mixture of experts print as they parse.
// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s
// RUN: cortiq-opt %s --mlir-print-op-generic | cortiq-opt | FileCheck %s

// CHECK-LABEL: func.func @unfused
func.func @unfused(%x: tensor<?x32xf32>, %l: tensor<?x2xf32>, %b: !cmf.weight<2, f32>, %g0: !cmf.weight<16x32, q8_0>,
                   %g1: !cmf.weight<8x32, f16>, %d0: !cmf.weight<32x16, f16>, %d1: !cmf.weight<32x8, f16>,
                   %b0: !cmf.weight<16, f32>, %b1: !cmf.weight<8, f32>) -> tensor<?x32xf32> {
  // CHECK: cmf.moe_route %{{.*}} bias(%{{.*}}) scales(%{{.*}}) {routing = #cmf.routing<top_k = 1, scoring = sigmoid, norm_epsilon = {{.*}} : f64, scale = 2.500000e+00 : f64, groups = 2>} : (tensor<?x2xf32>, !cmf.weight<2, f32>, !cmf.weight<2, f32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
  %ids, %w = cmf.moe_route %l bias(%b) scales(%b)
    {routing = #cmf.routing<top_k = 1, scoring = sigmoid, norm_epsilon = 1.0e-6 : f64, scale = 2.5 : f64, groups = 2, groups_used = 1>}
    : (tensor<?x2xf32>, !cmf.weight<2, f32>, !cmf.weight<2, f32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
  // CHECK: cmf.moe_experts %{{.*}}, %{{.*}}, %{{.*}} gate(%{{.*}}, %{{.*}}) up(%{{.*}}, %{{.*}}) down(%{{.*}}, %{{.*}}) gate_biases(%{{.*}}, %{{.*}}) {activation = #cmf.activation<silu>}
  %y = cmf.moe_experts %x, %ids, %w gate(%g0, %g1) up(%g0, %g1) down(%d0, %d1) gate_biases(%b0, %b1)
    {activation = #cmf.activation<silu>}
    : (tensor<?x32xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !cmf.weight<16x32, q8_0>, !cmf.weight<8x32, f16>, !cmf.weight<16x32, q8_0>,
       !cmf.weight<8x32, f16>, !cmf.weight<32x16, f16>, !cmf.weight<32x8, f16>, !cmf.weight<16, f32>, !cmf.weight<8, f32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @fused
func.func @fused(%x: tensor<?x32xf32>, %r: !cmf.weight<2x32, f32>, %rb: !cmf.weight<2, f32>, %g: !cmf.weight<16x32, q8_0>,
                 %d: !cmf.weight<32x16, f16>, %sg: !cmf.weight<1x32, f16>) -> tensor<?x32xf32> {
  // CHECK: cmf.fused_moe %{{.*}} route(%{{.*}}) by(%{{.*}}) router_bias(%{{.*}}) bias(%{{.*}}) gate(%{{.*}}, %{{.*}}) up(%{{.*}}, %{{.*}}) down(%{{.*}}, %{{.*}}) shared(%{{.*}}, %{{.*}}, %{{.*}}) shared_gate(%{{.*}}) residual(%{{.*}}) {activation = #cmf.activation<silu>, arm = #cmf.arm<fast>, routing = #cmf.routing<top_k = 2, scoring = softmax>}
  %y = cmf.fused_moe %x route(%x) by(%r) router_bias(%rb) bias(%rb) gate(%g, %g) up(%g, %g) down(%d, %d)
    shared(%g, %g, %d) shared_gate(%sg) residual(%x)
    {activation = #cmf.activation<silu>, arm = #cmf.arm<fast>, routing = #cmf.routing<top_k = 2, scoring = softmax>}
    : (tensor<?x32xf32>, tensor<?x32xf32>, !cmf.weight<2x32, f32>, !cmf.weight<2, f32>, !cmf.weight<2, f32>, !cmf.weight<16x32, q8_0>,
       !cmf.weight<16x32, q8_0>, !cmf.weight<16x32, q8_0>, !cmf.weight<16x32, q8_0>, !cmf.weight<32x16, f16>, !cmf.weight<32x16, f16>,
       !cmf.weight<16x32, q8_0>, !cmf.weight<16x32, q8_0>, !cmf.weight<32x16, f16>, !cmf.weight<1x32, f16>, tensor<?x32xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

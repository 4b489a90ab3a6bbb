// Scores by resonance take the place of a router's product, and low-rank experts become the products of their factors: those of the first
// factors beside each other, then those of the second ones, a path adding to the one before.
// RUN: cortiq-opt %s --cmf-fuse-moe --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s

// CHECK: kernel.resonance %{{.*}} means [@model.layers.0.m0, @model.layers.0.m1] biases [@b0, @b1] shells [@b1] -> %[[S:.*]] :
// CHECK: kernel.moe_route %[[S]] <softmax>
// CHECK: kernel.stage "layer 0: experts' gate_proj+up_proj"
// CHECK: kernel.expert @model.layers.0.g0_v1.weight(
// CHECK: kernel.expert @model.layers.0.g0_v2.weight(
// CHECK: kernel.expert @model.layers.0.up0.weight(
// CHECK: kernel.stage "layer 0: experts' gate_proj+up_proj"
// CHECK: kernel.expert @model.layers.0.g0_u1.weight(%{{.*}}) -> %[[FIRST:.*]] <blr_u
// CHECK: kernel.stage "layer 0: experts' gate_proj+up_proj"
// CHECK: kernel.expert @model.layers.0.g0_u2.weight(%{{.*}}) sum(%[[FIRST]] :
#low = #cmf.source<file = 0, offset = 0, bytes = 1000, low_rank = #cmf.low_rank<paths = 2, rank = 8>>
module attributes {cmf.model = {architecture = "t"}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
    %we = cmf.weight "model.embed_tokens.weight" : !cmf.weight<32x32, f32>
    %x = cmf.embed %ids, %we : tensor<?xi32>, !cmf.weight<32x32, f32>
    %m0 = cmf.weight "model.layers.0.m0" : !cmf.weight<32, f16>
    %m1 = cmf.weight "model.layers.0.m1" : !cmf.weight<32, f16>
    %b0 = cmf.weight "b0" : !cmf.weight<1, f32>
    %b1 = cmf.weight "b1" : !cmf.weight<1, f32>
    %g0 = cmf.weight "model.layers.0.g0.weight" {source = #low} : !cmf.weight<16x32, blr>
    %g1 = cmf.weight "model.layers.0.g1.weight" {source = #low} : !cmf.weight<16x32, blr>
    %u0 = cmf.weight "model.layers.0.up0.weight" : !cmf.weight<16x32, q8_0>
    %u1 = cmf.weight "model.layers.0.up1.weight" : !cmf.weight<16x32, q8_0>
    %d0 = cmf.weight "model.layers.0.d0.weight" : !cmf.weight<32x16, f16>
    %d1 = cmf.weight "model.layers.0.d1.weight" : !cmf.weight<32x16, f16>
    %s = cmf.resonance %x means(%m0, %m1) biases(%b0, %b1) shells(%b1) : (tensor<?x32xf32>, !cmf.weight<32, f16>, !cmf.weight<32, f16>, !cmf.weight<1, f32>, !cmf.weight<1, f32>, !cmf.weight<1, f32>) -> tensor<?x2xf32>
    %i, %w = cmf.moe_route %s {routing = #cmf.routing<top_k = 1, scoring = softmax>} : (tensor<?x2xf32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
    %y = cmf.moe_experts %x, %i, %w gate(%g0, %g1) up(%u0, %u1) down(%d0, %d1) {activation = #cmf.activation<silu>}
      : (tensor<?x32xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !cmf.weight<16x32, blr>, !cmf.weight<16x32, blr>, !cmf.weight<16x32, q8_0>, !cmf.weight<16x32, q8_0>, !cmf.weight<32x16, f16>, !cmf.weight<32x16, f16>) -> tensor<?x32xf32>
    return %y : tensor<?x32xf32>
  }
}

// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s

// Each operation has a state of its own; taps become floats, and only what follows the last state runs for wanted tokens
// alone.
// CHECK-DAG: kernel.weight @model.layers.0.linear_attn.conv1d.weight f32 verbatim 40 x 4 {source_codec = "f16"}
// CHECK-DAG: kernel.state @state0 {elements = 120 : i64}
// CHECK-DAG: kernel.state @state1 {elements = 128 : i64}
// CHECK: kernel.stage "layer 0: conv1d" {
// CHECK-NEXT: kernel.causal_conv %{{.*}} taps(@model.layers.0.linear_attn.conv1d.weight) state(@state0) -> %[[U:.*]] {silu, taps = 4 : i64}
// CHECK: kernel.stage "layer 0: gated delta" {
// CHECK-NEXT: kernel.gated_delta %[[U]], %{{.*}} decay(@model.layers.0.linear_attn.A_log) dt_bias(@model.layers.0.linear_attn.dt_bias) norm(@model.layers.0.linear_attn.norm.weight) state(@state1) -> %[[Y:.*]] {eps
// CHECK: kernel.stage head "layer 0: out_proj input" {
// CHECK-NEXT: kernel.quantize %[[Y]] act(
module attributes {cmf.model = {architecture = "t"}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
    %we = cmf.weight "model.embed_tokens.weight" : !cmf.weight<32x32, f32>
    %wq = cmf.weight "model.layers.0.linear_attn.in_proj_qkv.weight" : !cmf.weight<40x32, q8_0>
    %wz = cmf.weight "model.layers.0.linear_attn.in_proj_z.weight" : !cmf.weight<32x32, q8_0>
    %wa = cmf.weight "model.layers.0.linear_attn.in_proj_a.weight" : !cmf.weight<2x32, q8_0>
    %taps = cmf.weight "model.layers.0.linear_attn.conv1d.weight" : !cmf.weight<40x4, f16>
    %decay = cmf.weight "model.layers.0.linear_attn.A_log" : !cmf.weight<2, f16>
    %dt = cmf.weight "model.layers.0.linear_attn.dt_bias" : !cmf.weight<2, f16>
    %norm = cmf.weight "model.layers.0.linear_attn.norm.weight" : !cmf.weight<16, f16>
    %wo = cmf.weight "model.layers.0.linear_attn.out_proj.weight" : !cmf.weight<32x32, q8_0>
    %h = cmf.embed %ids, %we : tensor<?xi32>, !cmf.weight<32x32, f32>
    %qkv, %z, %a = cmf.fused_matmul %h weights(%wq, %wz, %wa) : tensor<?x32xf32> weights(!cmf.weight<40x32, q8_0>, !cmf.weight<32x32, q8_0>, !cmf.weight<2x32, q8_0>)
    %u = cmf.causal_conv %qkv, %taps {state = 0 : i64, silu} : tensor<?x40xf32>, !cmf.weight<40x4, f16>
    %y = cmf.gated_delta %u, %z, %a, %a, %decay, %dt, %norm
      {state = 1 : i64, key_heads = 1 : i64, value_heads = 2 : i64, key_dim = 4 : i64, value_dim = 16 : i64, eps = 1.0e-6 : f64}
      : (tensor<?x40xf32>, tensor<?x32xf32>, tensor<?x2xf32>, tensor<?x2xf32>, !cmf.weight<2, f16>, !cmf.weight<2, f16>,
         !cmf.weight<16, f16>) -> tensor<?x32xf32>
    %o = cmf.fused_matmul %y weights(%wo) : tensor<?x32xf32> weights(!cmf.weight<32x32, q8_0>)
    return %o : tensor<?x32xf32>
  }
}

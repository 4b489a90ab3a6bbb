// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s

// A weight that skills replace: one call for the model's own, one a skill, one for mixtures, which is f32. The norm in
// front writes every form that one of them reads; column scales make an input that exists only for their skill.
// CHECK-DAG: kernel.weight @w q8_row r16 16 x 32
// CHECK-DAG: kernel.weight @skill.a.w q8_2f r16 16 x 32
// CHECK-DAG: kernel.weight @blend.w f32 r16 16 x 32 {kernel.blend = {parts = [@w, @skill.a.w], skills = array<i64: -1, 0>}}
// CHECK: kernel.norm %{{.*}} out(%[[F:.*]] : !kernel.buffer<f32, 32>) act(%[[Q:.*]] : !kernel.buffer<q8a, 32>)
// CHECK: kernel.stage "w input" {
// CHECK-NEXT: kernel.choose base {
// CHECK-NEXT: } cases [0] {
// CHECK-NEXT: kernel.quantize %[[F]] column_scale(@skill.a.w) act(%[[S:.*]] : !kernel.buffer<q8a, 32>)
// CHECK: kernel.stage "w" {
// CHECK-NEXT: kernel.choose base {
// CHECK: kernel.call @w(%[[Q]])
// CHECK: cases [0, -1] {
// CHECK: kernel.call @skill.a.w(%[[S]])
// CHECK: kernel.call @blend.w(%[[F]])
module attributes {cmf.model = {architecture = "llama"}, cmf.overlay_catalog = {skills = [{id = "a"}, {id = "b"}], masks = []}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x16xf32> {
    %we = cmf.weight "embed" : !cmf.weight<64x32, f32>
    %wn = cmf.weight "norm" : !cmf.weight<32, f32>
    %b = cmf.weight "w" : !cmf.weight<16x32, q8_row>
    %s = cmf.weight "skill.a.w" : !cmf.weight<16x32, q8_2f>
    %w = cmf.overlay %b, %s {skills = array<i64: 0>} : !cmf.weight<16x32, q8_row>, !cmf.weight<16x32, q8_2f>
    %x = cmf.embed %ids, %we : tensor<?xi32>, !cmf.weight<64x32, f32>
    %n = cmf.rms_norm %x, %wn {eps = 1.0e-5 : f64} : tensor<?x32xf32>, !cmf.weight<32, f32>
    %y = cmf.fused_matmul %n weights(%w) : tensor<?x32xf32> weights(!cmf.weight<16x32, q8_row>)
    return %y : tensor<?x16xf32>
  }
}

// RUN: cortiq-opt %s --cmf-choose-layout | FileCheck %s

// A head that takes the same payload as the embedding becomes the embedding's weight, in the layout that the head's
// product wants. A table that is only looked up in, vectors, and rows that no group form serves stay as in the file.

// CHECK: %[[E:.*]] = cmf.weight "model.embed_tokens.weight" {layout = #cmf.layout<r16>, source = #cmf.source<file = 0, offset = 64, bytes = 2176>}
// CHECK-NOT: "lm_head.weight"
// CHECK: cmf.weight "positions" {layout = #cmf.layout<verbatim>}
// CHECK: cmf.weight "norm" {layout = #cmf.layout<verbatim>}
// CHECK: cmf.weight "odd" {layout = #cmf.layout<verbatim>}
// CHECK: cmf.embed %{{.*}}, %[[E]]
// CHECK: cmf.fused_matmul %{{.*}} weights(%[[E]])
func.func @forward(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  %e = cmf.weight "model.embed_tokens.weight" {source = #cmf.source<file = 0, offset = 64, bytes = 2176>} : !cmf.weight<64x32, q8_0>
  %h = cmf.weight "lm_head.weight" {source = #cmf.source<file = 0, offset = 64, bytes = 2176>} : !cmf.weight<64x32, q8_0>
  %p = cmf.weight "positions" : !cmf.weight<64x32, q8_0>
  %n = cmf.weight "norm" : !cmf.weight<32, f16>
  %o = cmf.weight "odd" : !cmf.weight<32x32, q4_block>
  %x = cmf.embed %ids, %e : tensor<?xi32>, !cmf.weight<64x32, q8_0>
  %y = cmf.embed %ids, %p : tensor<?xi32>, !cmf.weight<64x32, q8_0>
  %s, %m = cmf.add_rms_norm %x, %y, %n {eps = 0.5 : f64} : tensor<?x32xf32>, !cmf.weight<32, f16>
  %z = cmf.embed %ids, %o : tensor<?xi32>, !cmf.weight<32x32, q4_block>
  %l = cmf.fused_matmul %m weights(%h) : tensor<?x32xf32> weights(!cmf.weight<64x32, q8_0>)
  return %l : tensor<?x64xf32>
}

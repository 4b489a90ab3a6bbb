// Matrices of single heads become one product whose parts read and write their columns, always from floats; rows are put together by a
// stage of their own. Anchors take the queries as they were.
// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s

// CHECK: kernel.concat_heads %[[Q:.*]], %[[K:.*]] -> %[[KEYS:.*]] {heads = 2 : i64}
// CHECK: kernel.attention_prep %{{.*}}, %[[KEYS]], %{{.*}} cache(@kv0) still(%[[STILL:.*]] : !kernel.buffer<f32, 64>) rope(@rope0)
// CHECK: kernel.attention %{{.*}} cache(@kv0) still(%[[STILL]] : !kernel.buffer<f32, 64>) anchors(@ak, @av)
// CHECK-SAME: anchor_count = 3 : i64, group_windows = array<i64: 2, 4>
// CHECK: kernel.matmul {
// CHECK-NEXT: kernel.call @h0(%[[A:.*]]) -> %[[Y:.*]] <q8_0, r16, k = 32, act = f32, isa = "x86-64-v3"> :
// CHECK-NEXT: kernel.call @h1(%[[A]]) -> %[[Y]] <q8_0, r16, k = 32, act = f32, isa = "x86-64-v3"> {input_column = 32 : i64, out_column = 32 : i64}
// CHECK: kernel.norm %[[Y]] weight(@n) bias(@n) out(%{{.*}} : !kernel.buffer<f32, 64>) {centered
#rope = #cmf.rope<inverse_frequencies = [1.0, 0.5], magnitude = 1.0 : f32>
module attributes {cmf.model = {architecture = "deepseek2"}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
    %e = cmf.weight "e" : !cmf.weight<64x32, q8_0>
    %x = cmf.embed %ids, %e : tensor<?xi32>, !cmf.weight<64x32, q8_0>
    %wq = cmf.weight "q" : !cmf.weight<64x32, q8_0>
    %wr = cmf.weight "r" : !cmf.weight<16x32, q8_0>
    %wk = cmf.weight "k" : !cmf.weight<48x32, q8_0>
    %wv = cmf.weight "v" : !cmf.weight<64x32, q8_0>
    %q = cmf.fused_matmul %x weights(%wq) : tensor<?x32xf32> weights(!cmf.weight<64x32, q8_0>)
    %r = cmf.fused_matmul %x weights(%wr) : tensor<?x32xf32> weights(!cmf.weight<16x32, q8_0>)
    %k = cmf.fused_matmul %x weights(%wk) : tensor<?x32xf32> weights(!cmf.weight<48x32, q8_0>)
    %v = cmf.fused_matmul %x weights(%wv) : tensor<?x32xf32> weights(!cmf.weight<64x32, q8_0>)
    %both = cmf.concat_heads %r, %k {heads = 2 : i64} : tensor<?x16xf32>, tensor<?x48xf32> -> tensor<?x64xf32>
    %qr = cmf.rope %q {head_dim = 32 : i64, rope = #rope} : tensor<?x64xf32>
    %kr = cmf.rope %both {head_dim = 32 : i64, rope = #rope} : tensor<?x64xf32>
    %ak = cmf.weight "ak" : !cmf.weight<192, f32>
    %av = cmf.weight "av" : !cmf.weight<192, f32>
    %a = cmf.attention %qr, %kr, %v still(%q) anchors(%ak, %av)
        {layer = 0 : i64, heads = 2 : i64, kv_heads = 2 : i64, head_dim = 32 : i64, v_dim = 32 : i64, scale = 0.125 : f64,
         window = 4 : i64, group_windows = array<i64: 2, 4>, ring}
        : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32> still(tensor<?x64xf32>) anchors(!cmf.weight<192, f32>, !cmf.weight<192, f32>)
        -> tensor<?x64xf32>
    %h0 = cmf.weight "h0" : !cmf.weight<32x32, q8_0>
    %h1 = cmf.weight "h1" : !cmf.weight<32x32, q8_0>
    %y = cmf.head_matmul %a weights(%h0, %h1) : tensor<?x64xf32> weights(!cmf.weight<32x32, q8_0>, !cmf.weight<32x32, q8_0>)
    %n = cmf.weight "n" : !cmf.weight<64, f32>
    %z = cmf.layer_norm %y weight(%n) bias(%n) {eps = 1.0e-5 : f64} : tensor<?x64xf32> weight(!cmf.weight<64, f32>) bias(!cmf.weight<64, f32>)
    return %z : tensor<?x64xf32>
  }
}

// RUN: cortiq-opt %s --split-input-file --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s
// RUN: cortiq-opt %s --split-input-file --cmf-specialise="target=x86-64-v3 numerics=exact" --cmf-choose-layout --cmf-to-kernel | FileCheck %s --check-prefix=EXACT

// A layer of one attention and one gated block. Norms, attention and gate write the quantized activations that the
// products read; the exact arm reads floats instead.
// The tied head is one weight; norm vectors become f32 with gemma's one added.
// CHECK: kernel.weight @model.embed_tokens.weight q8_0 r16 64 x 32
// CHECK: kernel.weight @model.layers.0.input_layernorm.weight f32 verbatim 1 x 32 {add = 1.000000e+00 : f32, source_codec = "f16"}
// CHECK: kernel.kv_layer @kv0 {k_dim = 8 : i64, kv_heads = 2 : i64, v_dim = 8 : i64}
// CHECK: kernel.rope_table @rope0 [1.000000e+00, 5.000000e-01]
// CHECK: kernel.program @program {
// CHECK: kernel.stage "embed_tokens" {
// CHECK-NEXT: kernel.embed @model.embed_tokens.weight -> %[[X:.*]] {scale = 2.000000e+00 : f32}
// f16 has no integer form, so the norm writes floats beside the quantized activations.
// CHECK: kernel.stage "layer 0: input_layernorm" {
// CHECK-NEXT: kernel.norm %[[X]] weight(@model.layers.0.input_layernorm.weight) out(%[[N:.*]] : !kernel.buffer<f32, 32>) act(%[[NQ:.*]] : !kernel.buffer<q8a, 32>)
// CHECK: kernel.stage "layer 0: q_proj+k_proj+v_proj" {
// CHECK-NEXT: kernel.matmul {
// CHECK-NEXT: kernel.call @model.layers.0.self_attn.q_proj.weight(%[[NQ]]) -> %[[Q:.*]] <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3">
// CHECK-NEXT: kernel.call @model.layers.0.self_attn.k_proj.weight(%[[NQ]]) -> %[[K:.*]] <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3">
// CHECK-NEXT: kernel.call @model.layers.0.self_attn.v_proj.weight(%[[N]]) bias(@model.layers.0.self_attn.v_proj.bias) -> %[[V:.*]] <f16, r16, k = 32, act = f32, isa = "x86-64-v3", bias>
// CHECK: kernel.attention_prep %[[Q]], %[[K]], %[[V]] cache(@kv0) rope(@rope0) {head_dim = 8 : i64, heads = 4 : i64}
// CHECK: kernel.attention %[[Q]] cache(@kv0) act(%[[AQ:.*]] : !kernel.buffer<q8a, 32>)
// What follows the last attention runs only where logits are wanted.
// CHECK: kernel.stage head "layer 0: o_proj" {
// CHECK: kernel.call @model.layers.0.self_attn.o_proj.weight(%[[AQ]]) residual(%[[X]] : !kernel.buffer<f32, 32>)
// CHECK: kernel.glu silu %{{.*}} up(%{{.*}} : !kernel.buffer<f32, 96>) act(%{{.*}} : !kernel.buffer<q8a, 96>)
// CHECK: kernel.stage head "norm" {
// CHECK: kernel.stage head "embed_tokens" {
// CHECK: kernel.call @model.embed_tokens.weight(%{{.*}}) -> %[[L:.*]] <q8_0
// Scale and cap are one operation, in place.
// CHECK: kernel.logits %[[L]] {multiplier = 5.000000e-01 : f32, softcap = 3.000000e+01 : f32}
// CHECK: kernel.return %[[L]]

// EXACT: kernel.norm %{{.*}} weight(@model.layers.0.input_layernorm.weight) out(%[[N:.*]] : !kernel.buffer<f32, 32>) {eps
// EXACT: kernel.call @model.layers.0.self_attn.q_proj.weight(%[[N]]) -> %{{.*}} <q4_0, r16, k = 32, act = f32
// EXACT-NOT: q8a
#rope = #cmf.rope<inverse_frequencies = [1.0, 0.5], magnitude = 1.0 : f32>
module attributes {cmf.model = {architecture = "llama"}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x64xf32> {
    %we = cmf.weight "model.embed_tokens.weight" : !cmf.weight<64x32, q8_0>
    %wn = cmf.weight "model.layers.0.input_layernorm.weight" : !cmf.weight<32, f16>
    %wq = cmf.weight "model.layers.0.self_attn.q_proj.weight" : !cmf.weight<32x32, q4_0>
    %wk = cmf.weight "model.layers.0.self_attn.k_proj.weight" : !cmf.weight<16x32, q4_0>
    %wv = cmf.weight "model.layers.0.self_attn.v_proj.weight" : !cmf.weight<16x32, f16>
    %bv = cmf.weight "model.layers.0.self_attn.v_proj.bias" : !cmf.weight<16, f32>
    %wo = cmf.weight "model.layers.0.self_attn.o_proj.weight" : !cmf.weight<32x32, q8_0>
    %wm = cmf.weight "model.layers.0.post_attention_layernorm.weight" : !cmf.weight<32, f32>
    %wg = cmf.weight "model.layers.0.mlp.gate_proj.weight" : !cmf.weight<96x32, q8_0>
    %wu = cmf.weight "model.layers.0.mlp.up_proj.weight" : !cmf.weight<96x32, q8_0>
    %wd = cmf.weight "model.layers.0.mlp.down_proj.weight" : !cmf.weight<32x96, q8_0>
    %wf = cmf.weight "model.norm.weight" : !cmf.weight<32, f32>
    %x = cmf.embed %ids, %we {scale = 2.0 : f64} : tensor<?xi32>, !cmf.weight<64x32, q8_0>
    %n = cmf.rms_norm %x, %wn {eps = 1.0e-5 : f64, unit_offset} : tensor<?x32xf32>, !cmf.weight<32, f16>
    %q, %k, %v = cmf.fused_matmul %n weights(%wq, %wk, %wv) biases(%bv) {biased = array<i1: false, false, true>}
      : tensor<?x32xf32> weights(!cmf.weight<32x32, q4_0>, !cmf.weight<16x32, q4_0>, !cmf.weight<16x32, f16>)
        biases(!cmf.weight<16, f32>)
    %qr = cmf.rope %q {head_dim = 8 : i64, rope = #rope} : tensor<?x32xf32>
    %kr = cmf.rope %k {head_dim = 8 : i64, rope = #rope} : tensor<?x16xf32>
    %a = cmf.attention %qr, %kr, %v {layer = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 8 : i64, v_dim = 8 : i64,
                                     scale = 0.25 : f64} : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x32xf32>
    %h = cmf.fused_matmul %a weights(%wo) residual(%x)
      : tensor<?x32xf32> weights(!cmf.weight<32x32, q8_0>) residual(tensor<?x32xf32>)
    %m = cmf.rms_norm %h, %wm {eps = 1.0e-5 : f64} : tensor<?x32xf32>, !cmf.weight<32, f32>
    %g, %u = cmf.fused_matmul %m weights(%wg, %wu)
      : tensor<?x32xf32> weights(!cmf.weight<96x32, q8_0>, !cmf.weight<96x32, q8_0>)
    %s = cmf.glu silu(%g, %u) : tensor<?x96xf32>
    %d = cmf.fused_matmul %s weights(%wd) residual(%h)
      : tensor<?x96xf32> weights(!cmf.weight<32x96, q8_0>) residual(tensor<?x32xf32>)
    %f = cmf.rms_norm %d, %wf {eps = 1.0e-5 : f64} : tensor<?x32xf32>, !cmf.weight<32, f32>
    %l = cmf.fused_matmul %f weights(%we) : tensor<?x32xf32> weights(!cmf.weight<64x32, q8_0>)
    %ls = cmf.scale %l {factor = 0.5 : f64} : tensor<?x64xf32>
    %lc = cmf.softcap %ls {cap = 30.0 : f64} : tensor<?x64xf32>
    return %lc : tensor<?x64xf32>
  }
}

// -----

// Norms of query and key heads and the weightless one of values move into attention_prep; a weight with column scales gets
// an input of its own.
// CHECK-LABEL: kernel.weight @embed
// CHECK: kernel.kv_layer @kv3 {k_dim = 8 : i64, kv_heads = 4 : i64, v_dim = 8 : i64, window = 16 : i64}
// CHECK: kernel.stage "q input" {
// CHECK-NEXT: kernel.quantize %[[X:.*]] column_scale(@q) act(%[[A:.*]] : !kernel.buffer<q8a, 32>)
// CHECK: kernel.stage "k input" {
// CHECK-NEXT: kernel.quantize %[[X]] act(%[[B:.*]] : !kernel.buffer<q8a, 32>)
// CHECK: kernel.call @q(%[[A]])
// CHECK: kernel.call @k(%[[B]])
// CHECK: kernel.call @v(%[[B]])
// CHECK: kernel.attention_prep %{{.*}}, %{{.*}}, %{{.*}} cache(@kv3) q_norm(@qn) k_norm(@kn) {head_dim = 8 : i64, heads = 4 : i64, norm_eps = 5.000000e-01 : f32, v_norm}
// CHECK: kernel.attention %{{.*}} cache(@kv3) sinks(@sinks) out(
// EXACT-LABEL: kernel.weight @embed
// EXACT: kernel.quantize %[[X:.*]] column_scale(@q) out(%[[A:.*]] : !kernel.buffer<f32, 32>)
// EXACT: kernel.call @q(%[[A]])
// EXACT: kernel.call @k(%[[X]])
module attributes {cmf.model = {architecture = "llama"}} {
  func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
    %we = cmf.weight "embed" : !cmf.weight<64x32, q8_0>
    %wq = cmf.weight "q" : !cmf.weight<32x32, q8_2f>
    %wk = cmf.weight "k" : !cmf.weight<32x32, q8_0>
    %wv = cmf.weight "v" : !cmf.weight<32x32, q8_0>
    %qn = cmf.weight "qn" : !cmf.weight<8, f32>
    %kn = cmf.weight "kn" : !cmf.weight<8, f32>
    %sinks = cmf.weight "sinks" : !cmf.weight<4, f32>
    %x = cmf.embed %ids, %we : tensor<?xi32>, !cmf.weight<64x32, q8_0>
    %q, %k, %v = cmf.fused_matmul %x weights(%wq, %wk, %wv)
      : tensor<?x32xf32> weights(!cmf.weight<32x32, q8_2f>, !cmf.weight<32x32, q8_0>, !cmf.weight<32x32, q8_0>)
    %qq = cmf.rms_norm %q, %qn {eps = 0.5 : f64, group = 8 : i64} : tensor<?x32xf32>, !cmf.weight<8, f32>
    %kk = cmf.rms_norm %k, %kn {eps = 0.5 : f64, group = 8 : i64} : tensor<?x32xf32>, !cmf.weight<8, f32>
    %vv = cmf.rms_norm %v {eps = 0.5 : f64, group = 8 : i64} : tensor<?x32xf32>
    %a = cmf.attention %qq, %kk, %vv sinks(%sinks) {layer = 3 : i64, heads = 4 : i64, kv_heads = 4 : i64, head_dim = 8 : i64,
                                                    v_dim = 8 : i64, scale = 0.25 : f64, window = 16 : i64}
      : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32> sinks(!cmf.weight<4, f32>) -> tensor<?x32xf32>
    return %a : tensor<?x32xf32>
  }
}

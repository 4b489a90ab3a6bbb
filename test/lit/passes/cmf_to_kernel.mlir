// RUN: cortiq-opt %s --split-input-file --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel | FileCheck %s
// RUN: cortiq-opt %s --split-input-file --cmf-specialise="target=x86-64-v3 numerics=exact" --cmf-choose-layout --cmf-to-kernel | FileCheck %s --check-prefix=EXACT

// A layer of one attention and one gated block. Norms, attention and gate write the quantized activations that the
// products read; the exact arm reads floats instead.
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

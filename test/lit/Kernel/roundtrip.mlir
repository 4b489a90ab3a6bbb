// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s

// Every operation of the dialect, in one program that stands for two layers' worth of forms.

// CHECK: kernel.weight @model.embed_tokens.weight q8_0 r16 64 x 32 {source = #cmf.source<file = 0, offset = 4096, bytes = 2176>}
kernel.weight @model.embed_tokens.weight q8_0 r16 64 x 32 {source = #cmf.source<file = 0, offset = 4096, bytes = 2176>}
// CHECK: kernel.weight @norm f32 verbatim 1 x 32 {add = 1.000000e+00 : f32, row_map = #cmf.rows<of = 64, first = 32>, source_codec = "f16"}
kernel.weight @norm f32 verbatim 1 x 32 {add = 1.0 : f32, source_codec = "f16", row_map = #cmf.rows<of = 64, first = 32>}
kernel.weight @head_norm f32 verbatim 1 x 8
kernel.weight @bias f32 verbatim 1 x 20
kernel.weight @sinks f32 verbatim 1 x 4
kernel.weight @w q4_0 r16 20 x 32
kernel.weight @wo q8_2f r16 32 x 32
// CHECK: kernel.define @gemv_f32_q8a_q4_0_r16_k32_1x16_bias_v3 <q4_0, r16, k = 32, tile = 1x16, act = q8a, isa = "x86-64-v3", bias>
kernel.define @gemv_f32_q8a_q4_0_r16_k32_1x16_bias_v3 <q4_0, r16, k = 32, tile = 1x16, act = q8a, isa = "x86-64-v3", bias>
kernel.define @gemv_f32_q8a_q4_0_r16_k32_1x4_bias_v3 <q4_0, r16, k = 32, tile = 1x4, act = q8a, isa = "x86-64-v3", bias>
// CHECK: kernel.kv_layer @kv0 {k_dim = 8 : i64, kv_heads = 2 : i64, v_dim = 8 : i64, window = 16 : i64}
kernel.kv_layer @kv0 {kv_heads = 2, k_dim = 8, v_dim = 8, window = 16}
// CHECK: kernel.rope_table @rope0 [1.000000e+00, 5.000000e-01] {magnitude = 2.000000e+00 : f32}
kernel.rope_table @rope0 [1.0, 0.5] {magnitude = 2.0 : f32}

// CHECK: kernel.program @program attributes {arena_bytes_per_token = 4096 : i64} {
kernel.program @program attributes {arena_bytes_per_token = 4096 : i64} {
  // CHECK: %[[X:.*]] = kernel.alloc {input, offset = 64 : i64} : !kernel.buffer<f32, 32>
  %x = kernel.alloc {offset = 64 : i64, input} : !kernel.buffer<f32, 32>
  // CHECK: %[[A:.*]] = kernel.alloc : !kernel.buffer<q8a, 32>
  %a = kernel.alloc : !kernel.buffer<q8a, 32>
  %q = kernel.alloc : !kernel.buffer<f32, 32>
  %k = kernel.alloc : !kernel.buffer<f32, 16>
  %v = kernel.alloc : !kernel.buffer<f32, 16>
  %y = kernel.alloc : !kernel.buffer<f32, 20>
  // CHECK: kernel.stage "embed" {
  kernel.stage "embed" {
    // CHECK: kernel.embed @model.embed_tokens.weight -> %[[X]] {scale = 2.000000e+00 : f32} : !kernel.buffer<f32, 32>
    kernel.embed @model.embed_tokens.weight -> %x {scale = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.stage "layer 0: norms" {
    // CHECK: kernel.norm %[[X]] add(%{{.*}} : !kernel.buffer<f32, 32>) weight(@norm) sum(%{{.*}} : !kernel.buffer<f32, 32>) out(%{{.*}} : !kernel.buffer<f32, 32>) act(%[[A]] : !kernel.buffer<q8a, 32>) {eps = 5.000000e-01 : f32, scale = 2.000000e+00 : f32} : !kernel.buffer<f32, 32>
    kernel.norm %x add(%q : !kernel.buffer<f32, 32>) weight(@norm) sum(%x : !kernel.buffer<f32, 32>)
      out(%q : !kernel.buffer<f32, 32>) act(%a : !kernel.buffer<q8a, 32>) {eps = 0.5 : f32, scale = 2.0 : f32} : !kernel.buffer<f32, 32>
    // CHECK: kernel.quantize %[[X]] column_scale(@wo) act(%[[A]] : !kernel.buffer<q8a, 32>) : !kernel.buffer<f32, 32>
    kernel.quantize %x column_scale(@wo) act(%a : !kernel.buffer<q8a, 32>) : !kernel.buffer<f32, 32>
    // CHECK: kernel.quantize %[[X]] column_scale(@wo) out(%{{.*}} : !kernel.buffer<f32, 32>) : !kernel.buffer<f32, 32>
    kernel.quantize %x column_scale(@wo) out(%q : !kernel.buffer<f32, 32>) : !kernel.buffer<f32, 32>
  }
  kernel.stage "layer 0: product" {
    // CHECK: kernel.matmul {
    // CHECK-NEXT: kernel.call @w(%[[A]]) bias(@bias) -> %{{.*}} <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3", bias> kernels [@gemv_f32_q8a_q4_0_r16_k32_1x16_bias_v3] tails [@gemv_f32_q8a_q4_0_r16_k32_1x4_bias_v3] : (!kernel.buffer<q8a, 32>) -> !kernel.buffer<f32, 20>
    // CHECK-NEXT: kernel.call @wo(%[[X]]) residual(%[[X]] : !kernel.buffer<f32, 32>) -> %{{.*}} <q8_2f, r16, k = 32, act = f32, isa = "x86-64-v3", res> : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 32>
    kernel.matmul {
      kernel.call @w(%a) bias(@bias) -> %y <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3", bias>
        kernels [@gemv_f32_q8a_q4_0_r16_k32_1x16_bias_v3] tails [@gemv_f32_q8a_q4_0_r16_k32_1x4_bias_v3]
        : (!kernel.buffer<q8a, 32>) -> !kernel.buffer<f32, 20>
      kernel.call @wo(%x) residual(%x : !kernel.buffer<f32, 32>) -> %q <q8_2f, r16, k = 32, act = f32, isa = "x86-64-v3", res>
        : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 32>
    }
  }
  kernel.stage "layer 0: attention" {
    // CHECK: kernel.attention_prep %{{.*}}, %{{.*}}, %{{.*}} cache(@kv0) q_norm(@head_norm) k_norm(@head_norm) rope(@rope0) {head_dim = 8 : i64, heads = 4 : i64, norm_after_rope, norm_eps = 5.000000e-01 : f32, v_norm} : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
    kernel.attention_prep %q, %k, %v cache(@kv0) q_norm(@head_norm) k_norm(@head_norm) rope(@rope0)
      {heads = 4 : i64, head_dim = 8 : i64, norm_eps = 0.5 : f32, norm_after_rope, v_norm}
      : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
    // CHECK: kernel.attention %{{.*}} cache(@kv0) sinks(@sinks) out(%[[X]] : !kernel.buffer<f32, 32>) act(%[[A]] : !kernel.buffer<q8a, 32>) {head_dim = 8 : i64, heads = 4 : i64, scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32} : !kernel.buffer<f32, 32>
    kernel.attention %q cache(@kv0) sinks(@sinks) out(%x : !kernel.buffer<f32, 32>) act(%a : !kernel.buffer<q8a, 32>)
      {heads = 4 : i64, head_dim = 8 : i64, scale = 0.25 : f32, softcap = 50.0 : f32} : !kernel.buffer<f32, 32>
    // CHECK: kernel.glu gelu_tanh %{{.*}} up(%{{.*}} : !kernel.buffer<f32, 16>) out(%{{.*}} : !kernel.buffer<f32, 16>) : !kernel.buffer<f32, 16>
    kernel.glu gelu_tanh %k up(%v : !kernel.buffer<f32, 16>) out(%k : !kernel.buffer<f32, 16>) : !kernel.buffer<f32, 16>
  }
  // CHECK: kernel.stage head "logits" {
  kernel.stage head "logits" {
    // CHECK: kernel.add %[[X]], %{{.*}} -> %[[X]] {scale = 5.000000e-01 : f32} : !kernel.buffer<f32, 32>
    kernel.add %x, %q -> %x {scale = 0.5 : f32} : !kernel.buffer<f32, 32>
    // CHECK: kernel.logits %{{.*}} {multiplier = 5.000000e-01 : f32, softcap = 3.000000e+01 : f32} : !kernel.buffer<f32, 20>
    kernel.logits %y {multiplier = 0.5 : f32, softcap = 30.0 : f32} : !kernel.buffer<f32, 20>
  }
  // CHECK: kernel.return %{{.*}} : !kernel.buffer<f32, 20>
  kernel.return %y : !kernel.buffer<f32, 20>
}

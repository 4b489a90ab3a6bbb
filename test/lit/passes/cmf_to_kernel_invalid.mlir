// RUN: cortiq-opt %s --split-input-file --cmf-specialise="target=x86-64-v3 numerics=fast" --cmf-choose-layout --cmf-to-kernel --verify-diagnostics

func.func @forward(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
  %w = cmf.weight "w" : !cmf.weight<16x32, q8_0>
  // expected-error @+1 {{must become a cmf.fused_matmul first: run cmf-fuse-dequant-matmul}}
  %d = cmf.dequant %w : !cmf.weight<16x32, q8_0>
  %y = cmf.matmul %x, %d : tensor<?x32xf32>, tensor<16x32xf32>
  return %y : tensor<?x16xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
  %w = cmf.weight "w" : !cmf.weight<16x32, q8_0>
  %x = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<16x32, q8_0>
  // expected-error @+1 {{stands outside of the queries and keys of an attention}}
  %y = cmf.rope %x {head_dim = 8 : i64, rope = #cmf.rope<inverse_frequencies = [1.0], magnitude = 1.0 : f32>} : tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

func.func @forward(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
  %w = cmf.weight "w" : !cmf.weight<16x32, q8_0>
  %q = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<16x32, q8_0>
  %k = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<16x32, q8_0>
  %v = cmf.embed %ids, %w : tensor<?xi32>, !cmf.weight<16x32, q8_0>
  %r = cmf.rope %q {head_dim = 8 : i64, rope = #cmf.rope<inverse_frequencies = [1.0], magnitude = 1.0 : f32>} : tensor<?x32xf32>
  // expected-error @+1 {{needs one rotation for queries and keys, and none for values}}
  %a = cmf.attention %r, %k, %v {layer = 0 : i64, heads = 4 : i64, kv_heads = 4 : i64, head_dim = 8 : i64, v_dim = 8 : i64,
                                 scale = 0.25 : f64} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

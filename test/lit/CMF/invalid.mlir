// What the dialect refuses; every message about a shape names both shapes.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{unknown codec 'q4_z'; known are}}
func.func private @codec(!cmf.weight<32x32, q4_z>)

// -----

// expected-error @below {{a q4_k tensor of 4 x 896 is not permitted: a row must be whole blocks of 256}}
func.func private @partial_block(!cmf.weight<4x896, q4_k>)

// -----

// expected-error @below {{codec 'u8' holds raw data, not weights}}
func.func private @raw(!cmf.weight<4x8, u8>)

// -----

// expected-error @below {{a weight has one or two dimensions, not 3}}
func.func private @rank(!cmf.weight<4x8x2, f32>)

// -----

// expected-error @below {{a weight's dimensions are positive, but one is 0}}
func.func private @zero(!cmf.weight<0x8, f32>)

// -----

// expected-error @below {{codec 'q8_row' needs a matrix, not a vector of 32}}
func.func private @vector(!cmf.weight<32, q8_row>)

// -----

func.func @rows_past_end() {
  // expected-error @below {{takes 4 rows from row 5 of a tensor that has 8}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 8, first = 5>} : !cmf.weight<4x8, f32>
  return
}

// -----

func.func @rows_first() {
  // expected-error @below {{'first' is row 9 of a tensor with 8 rows}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 8, first = 9>} : !cmf.weight<4x8, f32>
  return
}

// -----

func.func @rows_heads() {
  // expected-error @below {{has 12 rows, not a multiple of the 8 rows that 'deinterleave' reorders}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 12, deinterleave = 8>} : !cmf.weight<12x8, f32>
  return
}

// -----

func.func @rows_period() {
  // expected-error @below {{takes 4 rows of every 3, which is no part of them}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 12, take = 4, period = 3>} : !cmf.weight<4x8, f32>
  return
}

// -----

func.func @rows_split_heads() {
  // expected-error @below {{takes 4 rows of every 6, which splits the heads of 'deinterleave'}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 12, deinterleave = 8, take = 4, period = 6>} : !cmf.weight<8x8, f32>
  return
}

// -----

func.func @rows_beyond_period() {
  // expected-error @below {{takes 8 rows from row 3 of a tensor that has 12}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 12, first = 3, take = 4, period = 6>} : !cmf.weight<8x8, f32>
  return
}

// -----

func.func @source_least_bytes() {
  // expected-error @below {{has 20 bytes in its file, but '!cmf.weight<4x32, q1s>' with 4 rows there takes at least 28}}
  %w = cmf.weight "w" {source = #cmf.source<file = 0, offset = 0, bytes = 20>} : !cmf.weight<4x32, q1s>
  return
}

// -----

func.func @source_bytes() {
  // expected-error @below {{has 100 bytes in its file, but '!cmf.weight<4x8, f32>' with 4 rows there takes 128}}
  %w = cmf.weight "w" {source = #cmf.source<file = 0, offset = 0, bytes = 100>} : !cmf.weight<4x8, f32>
  return
}

// -----

func.func @matmul(%x: tensor<?x16xf32>, %d: tensor<4x8xf32>) {
  // expected-error @below {{takes 16 features, but its matrix 'tensor<4x8xf32>' has 8 columns}}
  %y = cmf.matmul %x, %d : tensor<?x16xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @bias(%x: tensor<?x16xf32>, %b: !cmf.weight<8, f32>) {
  // expected-error @below {{adds to 16 features, but its bias '!cmf.weight<8, f32>' has 8 values}}
  %y = cmf.bias_add %x, %b : tensor<?x16xf32>, !cmf.weight<8, f32>
  return
}

// -----

func.func @norm(%x: tensor<?x16xf32>, %w: !cmf.weight<8, f32>) {
  // expected-error @below {{normalizes 16 features, but its weight '!cmf.weight<8, f32>' has 8}}
  %y = cmf.rms_norm %x, %w {eps = 1.0e-5 : f64} : tensor<?x16xf32>, !cmf.weight<8, f32>
  return
}

// -----

func.func @norm_group(%x: tensor<?x16xf32>) {
  // expected-error @below {{has groups of 6, which do not divide 16 features}}
  %y = cmf.rms_norm %x {eps = 1.0e-5 : f64, group = 6 : i64} : tensor<?x16xf32>
  return
}

// -----

func.func @norm_matrix(%x: tensor<?x16xf32>, %w: !cmf.weight<8x16, f32>) {
  // expected-error @below {{operand #1 must be weight vector, but got '!cmf.weight<8x16, f32>'}}
  %y = cmf.rms_norm %x, %w {eps = 1.0e-5 : f64} : tensor<?x16xf32>, !cmf.weight<8x16, f32>
  return
}

// -----

func.func @rope(%x: tensor<?x16xf32>) {
  // expected-error @below {{rotates 6 features of heads of 4}}
  %y = cmf.rope %x {head_dim = 4 : i64, rope = #cmf.rope<inverse_frequencies = [1.0, 0.5, 0.25], magnitude = 1.0 : f32>} : tensor<?x16xf32>
  return
}

// -----

func.func @heads(%q: tensor<?x24xf32>, %k: tensor<?x16xf32>) {
  // expected-error @below {{has 3 heads, not a multiple of its 2 key/value heads}}
  %a = cmf.attention %q, %k, %k {layer = 0 : i64, heads = 3 : i64, kv_heads = 2 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
    : tensor<?x24xf32>, tensor<?x16xf32>, tensor<?x16xf32> -> tensor<?x24xf32>
  return
}

// -----

func.func @keys(%q: tensor<?x32xf32>, %k: tensor<?x8xf32>) {
  // expected-error @below {{keys have 8 features, not the 2 x 8 of its heads}}
  %a = cmf.attention %q, %k, %k {layer = 0 : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
    : tensor<?x32xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @sinks(%q: tensor<?x8xf32>, %s: !cmf.weight<4, f32>) {
  // expected-error @below {{has 4 sinks for 1 heads}}
  %a = cmf.attention %q, %q, %q sinks(%s) {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64}
    : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> sinks(!cmf.weight<4, f32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @window(%q: tensor<?x8xf32>) {
  // expected-error @below {{'window' must be within 1 and 16777216, but is 0}}
  %a = cmf.attention %q, %q, %q {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64, window = 0 : i64}
    : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @activation(%x: tensor<?x8xf32>) {
  // expected-error @below {{unknown activation 'swish'; known are silu, gelu_tanh, gelu, relu}}
  %g = cmf.glu swish(%x, %x) : tensor<?x8xf32>
  return
}

// -----

func.func @fused_columns(%x: tensor<?x8xf32>, %a: !cmf.weight<4x8, f32>, %b: !cmf.weight<4x16, f32>) {
  // expected-error @below {{takes 8 features, but weight 1, '!cmf.weight<4x16, f32>', has 16 columns}}
  %y:2 = cmf.fused_matmul %x weights(%a, %b) : tensor<?x8xf32> weights(!cmf.weight<4x8, f32>, !cmf.weight<4x16, f32>)
  return
}

// -----

func.func @fused_bias(%x: tensor<?x8xf32>, %a: !cmf.weight<4x8, f32>, %b: !cmf.weight<8, f32>) {
  // expected-error @below {{bias '!cmf.weight<8, f32>' of weight 0 has 8 values for its 4 rows}}
  %y = cmf.fused_matmul %x weights(%a) biases(%b) {biased = array<i1: true>} : tensor<?x8xf32> weights(!cmf.weight<4x8, f32>) biases(!cmf.weight<8, f32>)
  return
}

// -----

func.func @fused_biased(%x: tensor<?x8xf32>, %a: !cmf.weight<4x8, f32>, %b: !cmf.weight<4, f32>) {
  // expected-error @below {{has 1 biases, but no 'biased' that says whose they are}}
  %y = cmf.fused_matmul %x weights(%a) biases(%b) : tensor<?x8xf32> weights(!cmf.weight<4x8, f32>) biases(!cmf.weight<4, f32>)
  return
}

// -----

func.func @fused_residual(%x: tensor<?x8xf32>, %a: !cmf.weight<8x8, f32>) {
  // expected-error @below {{a residual needs a single weight, but there are 2}}
  %y:2 = cmf.fused_matmul %x weights(%a, %a) residual(%x) : tensor<?x8xf32> weights(!cmf.weight<8x8, f32>, !cmf.weight<8x8, f32>) residual(tensor<?x8xf32>)
  return
}

// -----

func.func @fused_residual_shape(%x: tensor<?x8xf32>, %a: !cmf.weight<4x8, f32>) {
  // expected-error @below {{residual 'tensor<?x8xf32>' differs from the result 'tensor<?x4xf32>'}}
  %y = cmf.fused_matmul %x weights(%a) residual(%x) : tensor<?x8xf32> weights(!cmf.weight<4x8, f32>) residual(tensor<?x8xf32>)
  return
}

// -----

// expected-error @below {{'token_tiles' must be positive and ascending, but 2 follows 4}}
module attributes {cmf.target = #cmf.target<name = "t", features = [], vector_bytes = 32, token_tiles = [1, 4, 2], l1 = 1, l2 = 1, cores = 1>} {}

// -----

// expected-error @below {{a table of rotary frequencies has at least one entry}}
module attributes {t = #cmf.rope<inverse_frequencies = [], magnitude = 1.0 : f32>} {}

// -----

func.func @cap(%x: tensor<?x8xf32>) {
  // expected-error @below {{'cap' must be a positive number}}
  %y = cmf.softcap %x {cap = -1.0 : f64} : tensor<?x8xf32>
  return
}

// -----

// expected-error @below {{a low rank is a multiple of 8 from 8 on, not 12}}
module attributes {t = #cmf.low_rank<paths = 1, rank = 12>} {}

// -----

// expected-error @below {{'path' is 2, but there are 1 paths}}
module attributes {t = #cmf.low_rank<paths = 1, rank = 8, path = 2>} {}

// -----

func.func @low_rank_codec() {
  // expected-error @below {{is a factor of a low-rank payload: its codec must be blr_u or blr_v}}
  %w = cmf.weight "w" {source = #cmf.source<file = 0, offset = 0, bytes = 224, low_rank = #cmf.low_rank<paths = 1, rank = 8, path = 1>>} : !cmf.weight<32x32, blr>
  return
}

// -----

func.func @low_rank_size() {
  // expected-error @below {{is a factor of rank 8, which '!cmf.weight<32x16, blr_u>' does not have}}
  %w = cmf.weight "w" {source = #cmf.source<file = 0, offset = 0, bytes = 224, low_rank = #cmf.low_rank<paths = 1, rank = 8, path = 1>>} : !cmf.weight<32x16, blr_u>
  return
}

// -----

func.func @low_rank_unsplit(%x: tensor<?x32xf32>) {
  // expected-error @below {{has a low-rank payload without 'path': its codec must be blr}}
  %w = cmf.weight "w" {source = #cmf.source<file = 0, offset = 0, bytes = 1088, low_rank = #cmf.low_rank<paths = 1, rank = 8>>} : !cmf.weight<32x32, q8_0>
  return
}

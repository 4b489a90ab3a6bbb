// Every operation, type and attribute prints as it parses.
// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s
// RUN: cortiq-opt %s --mlir-print-op-generic | cortiq-opt | FileCheck %s

// CHECK: #rope = #cmf.rope<inverse_frequencies = [1.000000e+00, 1.000000e-01], magnitude = 1.000000e+00 : f32>
#rope = #cmf.rope<inverse_frequencies = [1.0, 0.1], magnitude = 1.0 : f32>
// CHECK: #target = #cmf.target<name = "x86-64-v3", features = ["avx2", "fma"], vector_bytes = 32, token_tiles = [1, 2, 4, 8], l1 = 32768, l2 = 1048576, cores = 4>

module attributes {
  cmf.model = {architecture = "llama", hidden = 32, layers = 1, vocab = 100, trained_context = 64},
  cmf.numerics = "exact",
  cmf.target = #cmf.target<name = "x86-64-v3", features = ["avx2", "fma"], vector_bytes = 32, token_tiles = [1, 2, 4, 8],
                           l1 = 32768, l2 = 1048576, cores = 4>
} {

// CHECK-LABEL: func.func @weights
func.func @weights() {
  // CHECK: cmf.weight "a" : !cmf.weight<32, f32>
  %a = cmf.weight "a" : !cmf.weight<32, f32>
  // CHECK: cmf.weight "b" {source = #cmf.source<file = 0, offset = 4096, bytes = 1088>} : !cmf.weight<32x32, q8_0>
  %b = cmf.weight "b" {source = #cmf.source<file = 0, offset = 4096, bytes = 1088>} : !cmf.weight<32x32, q8_0>
  // CHECK: cmf.weight "u" {source = #cmf.source<file = 0, offset = 64, bytes = 224, low_rank = <paths = 1, rank = 8, path = 1>>} : !cmf.weight<32x8, blr_u>
  %u = cmf.weight "u" {source = #cmf.source<file = 0, offset = 64, bytes = 224, low_rank = #cmf.low_rank<paths = 1, rank = 8, path = 1>>} : !cmf.weight<32x8, blr_u>
  // CHECK: cmf.weight "taken" {rows = #cmf.rows<of = 24, first = 4, deinterleave = 4, take = 8, period = 12>} : !cmf.weight<16x8, f32>
  %taken = cmf.weight "taken" {rows = #cmf.rows<of = 24, first = 4, deinterleave = 4, take = 8, period = 12>} : !cmf.weight<16x8, f32>
  // CHECK: cmf.weight "c" {layout = #cmf.layout<r16>, rows = #cmf.rows<of = 64, first = 32, deinterleave = 8>} : !cmf.weight<16x256, q4_k>
  %c = cmf.weight "c" {layout = #cmf.layout<r16>, rows = #cmf.rows<of = 64, first = 32, deinterleave = 8>} : !cmf.weight<16x256, q4_k>
  return
}

// CHECK-LABEL: func.func @unfused
func.func @unfused(%ids: tensor<?xi32>, %w: !cmf.weight<100x32, q8_0>, %n: !cmf.weight<32, f32>,
                   %h: !cmf.weight<8, f32>, %s: !cmf.weight<4, f32>) -> tensor<?x100xf32> {
  // CHECK: cmf.embed %{{.*}}, %{{.*}} {scale = 2.000000e+00 : f64} : tensor<?xi32>, !cmf.weight<100x32, q8_0>
  %x = cmf.embed %ids, %w {scale = 2.0 : f64} : tensor<?xi32>, !cmf.weight<100x32, q8_0>
  // CHECK: cmf.rms_norm %{{.*}}, %{{.*}} {eps = 5.000000e-01 : f64, unit_offset} : tensor<?x32xf32>, !cmf.weight<32, f32>
  %y = cmf.rms_norm %x, %n {eps = 0.5 : f64, unit_offset} : tensor<?x32xf32>, !cmf.weight<32, f32>
  // CHECK: cmf.rms_norm %{{.*}}, %{{.*}} {eps = 5.000000e-01 : f64, group = 8 : i64} : tensor<?x32xf32>, !cmf.weight<8, f32>
  %q = cmf.rms_norm %y, %h {eps = 0.5 : f64, group = 8 : i64} : tensor<?x32xf32>, !cmf.weight<8, f32>
  // CHECK: cmf.rms_norm %{{.*}} {eps = 5.000000e-01 : f64, group = 8 : i64} : tensor<?x32xf32>
  %v = cmf.rms_norm %y {eps = 0.5 : f64, group = 8 : i64} : tensor<?x32xf32>
  // CHECK: cmf.rope %{{.*}} {head_dim = 8 : i64, rope = #rope} : tensor<?x32xf32>
  %r = cmf.rope %q {head_dim = 8 : i64, rope = #rope} : tensor<?x32xf32>
  // CHECK: cmf.attention %{{.*}}, %{{.*}}, %{{.*}} sinks(%{{.*}}) {head_dim = 8 : i64, heads = 4 : i64, kv_heads = 4 : i64, layer = 0 : i64, scale = 5.000000e-01 : f64, softcap = 5.000000e+01 : f64, v_dim = 8 : i64, window = 16 : i64} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32> sinks(!cmf.weight<4, f32>) -> tensor<?x32xf32>
  %t = cmf.attention %r, %r, %v sinks(%s) {layer = 0 : i64, heads = 4 : i64, kv_heads = 4 : i64, head_dim = 8 : i64,
                                           v_dim = 8 : i64, scale = 0.5 : f64, window = 16 : i64, softcap = 50.0 : f64}
    : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32> sinks(!cmf.weight<4, f32>) -> tensor<?x32xf32>
  // CHECK: cmf.glu gelu_tanh(%{{.*}}, %{{.*}}) : tensor<?x32xf32>
  %g = cmf.glu gelu_tanh(%t, %x) : tensor<?x32xf32>
  // CHECK: cmf.bias_add %{{.*}}, %{{.*}} : tensor<?x32xf32>, !cmf.weight<32, f32>
  %b = cmf.bias_add %g, %n : tensor<?x32xf32>, !cmf.weight<32, f32>
  // CHECK: cmf.add %{{.*}}, %{{.*}} : tensor<?x32xf32>
  %a = cmf.add %b, %x : tensor<?x32xf32>
  // CHECK: cmf.dequant %{{.*}} : !cmf.weight<100x32, q8_0>
  %d = cmf.dequant %w : !cmf.weight<100x32, q8_0>
  // CHECK: cmf.matmul %{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<100x32xf32>
  %l = cmf.matmul %a, %d : tensor<?x32xf32>, tensor<100x32xf32>
  // CHECK: cmf.scale %{{.*}} {factor = 1.250000e-01 : f64} : tensor<?x100xf32>
  %m = cmf.scale %l {factor = 0.125 : f64} : tensor<?x100xf32>
  // CHECK: cmf.softcap %{{.*}} {cap = 3.000000e+01 : f64} : tensor<?x100xf32>
  %o = cmf.softcap %m {cap = 30.0 : f64} : tensor<?x100xf32>
  return %o : tensor<?x100xf32>
}

// CHECK-LABEL: func.func @fused
func.func @fused(%x: tensor<?x256xf32>, %q: !cmf.weight<64x256, q4_k>, %k: !cmf.weight<32x256, q6_k>,
                 %o: !cmf.weight<256x256, q8_0>, %bk: !cmf.weight<32, f32>, %n: !cmf.weight<256, f32>) {
  // CHECK: %{{.*}}:2 = cmf.fused_matmul %{{.*}} weights(%{{.*}}, %{{.*}}) biases(%{{.*}}) {biased = array<i1: false, true>} : tensor<?x256xf32> weights(!cmf.weight<64x256, q4_k>, !cmf.weight<32x256, q6_k>) biases(!cmf.weight<32, f32>)
  %a, %b = cmf.fused_matmul %x weights(%q, %k) biases(%bk) {biased = array<i1: false, true>}
    : tensor<?x256xf32> weights(!cmf.weight<64x256, q4_k>, !cmf.weight<32x256, q6_k>) biases(!cmf.weight<32, f32>)
  // CHECK: cmf.fused_matmul %{{.*}} weights(%{{.*}}) residual(%{{.*}}) {arm = #cmf.arm<exact>} : tensor<?x256xf32> weights(!cmf.weight<256x256, q8_0>) residual(tensor<?x256xf32>)
  %c = cmf.fused_matmul %x weights(%o) residual(%x) {arm = #cmf.arm<exact>}
    : tensor<?x256xf32> weights(!cmf.weight<256x256, q8_0>) residual(tensor<?x256xf32>)
  // CHECK: cmf.add_rms_norm %{{.*}}, %{{.*}}, %{{.*}} {eps = 5.000000e-01 : f64} : tensor<?x256xf32>, !cmf.weight<256, f32>
  %s, %m = cmf.add_rms_norm %c, %x, %n {eps = 0.5 : f64} : tensor<?x256xf32>, !cmf.weight<256, f32>
  return
}

}

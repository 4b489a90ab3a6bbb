// cmf.hadamard and cmf.resonance print as they parse, and refuse what does not fit; so do attention's ring and experts without a router.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @both_ways
func.func @both_ways(%x: tensor<?x4xf32>) {
  // CHECK: cmf.hadamard %{{.*}} {block = 2 : i64, negative = array<i1: false, true, true, false>} : tensor<?x4xf32>
  %a = cmf.hadamard %x {block = 2 : i64, negative = array<i1: false, true, true, false>} : tensor<?x4xf32>
  // CHECK: cmf.hadamard %{{.*}} {block = 4 : i64, half, inverse, negative = array<i1: false, true, true, false>} : tensor<?x4xf32>
  %b = cmf.hadamard %a {block = 4 : i64, negative = array<i1: false, true, true, false>, inverse, half} : tensor<?x4xf32>
  return
}

// -----

func.func @block(%x: tensor<?x6xf32>) {
  // expected-error @below {{has blocks of 4, no power of two that divides 6 features}}
  %a = cmf.hadamard %x {block = 4 : i64, negative = array<i1: false, true, true, false, false, false>} : tensor<?x6xf32>
  return
}

// -----

func.func @odd_block(%x: tensor<?x6xf32>) {
  // expected-error @below {{has blocks of 3, no power of two}}
  %a = cmf.hadamard %x {block = 3 : i64, negative = array<i1: false, true, true, false, false, false>} : tensor<?x6xf32>
  return
}

// -----

func.func @signs(%x: tensor<?x4xf32>) {
  // expected-error @below {{has 3 signs for 4 features}}
  %a = cmf.hadamard %x {block = 2 : i64, negative = array<i1: false, true, true>} : tensor<?x4xf32>
  return
}

// -----

// CHECK-LABEL: func.func @scores
func.func @scores(%x: tensor<?x8xf32>) {
  %m = cmf.weight "m" : !cmf.weight<8, f32>
  %u = cmf.weight "u" : !cmf.weight<2x8, f16>
  %b = cmf.weight "b" : !cmf.weight<1, f32>
  // CHECK: cmf.resonance %{{.*}} means(%[[M:.*]], %[[M]]) biases(%[[B:.*]], %[[B]]) : (
  %r = cmf.resonance %x means(%m, %m) biases(%b, %b) : (tensor<?x8xf32>, !cmf.weight<8, f32>, !cmf.weight<8, f32>, !cmf.weight<1, f32>, !cmf.weight<1, f32>) -> tensor<?x2xf32>
  // CHECK: cmf.resonance %{{.*}} means(%[[M]], %[[M]]) bases(%[[U:.*]], %[[U]]) biases(%[[B]], %[[B]]) shells(%[[B]]) : (
  %s = cmf.resonance %x means(%m, %m) bases(%u, %u) biases(%b, %b) shells(%b) : (tensor<?x8xf32>, !cmf.weight<8, f32>, !cmf.weight<8, f32>, !cmf.weight<2x8, f16>, !cmf.weight<2x8, f16>, !cmf.weight<1, f32>, !cmf.weight<1, f32>, !cmf.weight<1, f32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @missing_mean(%x: tensor<?x8xf32>) {
  %m = cmf.weight "m" : !cmf.weight<8, f32>
  %b = cmf.weight "b" : !cmf.weight<1, f32>
  // expected-error @below {{has 1 means, 0 bases, 2 biases and 0 shells for 2 experts}}
  %s = cmf.resonance %x means(%m) biases(%b, %b) : (tensor<?x8xf32>, !cmf.weight<8, f32>, !cmf.weight<1, f32>, !cmf.weight<1, f32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @ranks(%x: tensor<?x8xf32>) {
  %m = cmf.weight "m" : !cmf.weight<8, f32>
  %u = cmf.weight "u" : !cmf.weight<2x8, f16>
  %v = cmf.weight "v" : !cmf.weight<1x8, f16>
  %b = cmf.weight "b" : !cmf.weight<1, f32>
  // expected-error @below {{takes 8 features, but has a basis '!cmf.weight<1x8, f16>' beside '!cmf.weight<2x8, f16>'}}
  %s = cmf.resonance %x means(%m, %m) bases(%u, %v) biases(%b, %b) : (tensor<?x8xf32>, !cmf.weight<8, f32>, !cmf.weight<8, f32>, !cmf.weight<2x8, f16>, !cmf.weight<1x8, f16>, !cmf.weight<1, f32>, !cmf.weight<1, f32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @ring(%q: tensor<?x8xf32>) {
  // expected-error @below {{has a 'ring' without a 'window'}}
  %a = cmf.attention %q, %q, %q {layer = 0 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 1.0 : f64, ring}
    : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @logits(%x: tensor<?x8xf32>, %l: tensor<?x2xf32>) {
  %g = cmf.weight "g" : !cmf.weight<4x8, f32>
  %d = cmf.weight "d" : !cmf.weight<8x4, f32>
  // expected-error @below {{has no router, so that it takes one logit of each of 1 experts, not 'tensor<?x2xf32>'}}
  %y = cmf.fused_moe %x route(%l) gate(%g) up(%g) down(%d) {activation = #cmf.activation<silu>, routing = #cmf.routing<top_k = 1, scoring = softmax>}
    : (tensor<?x8xf32>, tensor<?x2xf32>, !cmf.weight<4x8, f32>, !cmf.weight<4x8, f32>, !cmf.weight<8x4, f32>) -> tensor<?x8xf32>
  return
}

// What a mixture of experts refuses.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

func.func @too_many(%l: tensor<?x4xf32>) {
  // expected-error @below {{chooses 5 of 4 experts}}
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 5, scoring = softmax>} : (tensor<?x4xf32>) -> (tensor<?x5xi32>, tensor<?x5xf32>)
  return
}

// -----

func.func @closed_groups(%l: tensor<?x8xf32>) {
  // expected-error @below {{chooses 3 of 2 experts}}
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 3, scoring = softmax, groups = 4, groups_used = 1>} : (tensor<?x8xf32>) -> (tensor<?x3xi32>, tensor<?x3xf32>)
  return
}

// -----

func.func @uneven_groups(%l: tensor<?x8xf32>) {
  // expected-error @below {{has 8 experts, which do not form 3 groups of one size}}
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 1, scoring = softmax, groups = 3, groups_used = 1>} : (tensor<?x8xf32>) -> (tensor<?x1xi32>, tensor<?x1xf32>)
  return
}

// -----

func.func @results(%l: tensor<?x8xf32>) {
  // expected-error @below {{chooses 2 experts, but gives 'tensor<?x3xi32>'}}
  %i, %w = cmf.moe_route %l {routing = #cmf.routing<top_k = 2, scoring = softmax>} : (tensor<?x8xf32>) -> (tensor<?x3xi32>, tensor<?x2xf32>)
  return
}

// -----

func.func @bias(%l: tensor<?x8xf32>, %b: !cmf.weight<7, f32>) {
  // expected-error @below {{with 7 values for 8 experts}}
  %i, %w = cmf.moe_route %l bias(%b) {routing = #cmf.routing<top_k = 2, scoring = softmax>} : (tensor<?x8xf32>, !cmf.weight<7, f32>) -> (tensor<?x2xi32>, tensor<?x2xf32>)
  return
}

// -----

// expected-error @below {{the sum is divided by with 'norm_epsilon' or with 'norm_minimum', not with both}}
func.func private @norms() attributes {a = #cmf.routing<top_k = 1, scoring = softmax, norm_epsilon = 0.0 : f64, norm_minimum = 0.5 : f64>}

// -----

func.func @width(%x: tensor<?x32xf32>, %i: tensor<?x1xi32>, %w: tensor<?x1xf32>, %g: !cmf.weight<16x32, f16>, %d: !cmf.weight<32x8, f16>) {
  // expected-error @below {{expert 0 has gate}}
  %y = cmf.moe_experts %x, %i, %w gate(%g) up(%g) down(%d) {activation = #cmf.activation<silu>}
    : (tensor<?x32xf32>, tensor<?x1xi32>, tensor<?x1xf32>, !cmf.weight<16x32, f16>, !cmf.weight<16x32, f16>, !cmf.weight<32x8, f16>) -> tensor<?x32xf32>
  return
}

// -----

func.func @router(%x: tensor<?x32xf32>, %r: !cmf.weight<3x32, f16>, %g: !cmf.weight<16x32, f16>, %d: !cmf.weight<32x16, f16>) {
  // expected-error @below {{for 1 experts and 32 features}}
  %y = cmf.fused_moe %x route(%x) by(%r) gate(%g) up(%g) down(%d) {activation = #cmf.activation<silu>, routing = #cmf.routing<top_k = 1, scoring = softmax>}
    : (tensor<?x32xf32>, tensor<?x32xf32>, !cmf.weight<3x32, f16>, !cmf.weight<16x32, f16>, !cmf.weight<16x32, f16>, !cmf.weight<32x16, f16>) -> tensor<?x32xf32>
  return
}

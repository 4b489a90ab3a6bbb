// cmf.layer_norm, cmf.activate, activations with numbers and query temperatures: print as they parse, and their refusals.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @dense
func.func @dense(%x: tensor<?x12xf32>, %q: tensor<?x8xf32>) {
  %w = cmf.weight "w" : !cmf.weight<12, f32>
  // CHECK: cmf.layer_norm %{{.*}} weight(%{{.*}}) bias(%{{.*}}) {eps = 1.000000e-05 : f64} : tensor<?x12xf32> weight(!cmf.weight<12, f32>) bias(!cmf.weight<12, f32>)
  %a = cmf.layer_norm %x weight(%w) bias(%w) {eps = 1.0e-5 : f64} : tensor<?x12xf32> weight(!cmf.weight<12, f32>) bias(!cmf.weight<12, f32>)
  // CHECK: cmf.layer_norm %{{.*}} {eps = 0.000000e+00 : f64} : tensor<?x12xf32>
  %b = cmf.layer_norm %a {eps = 0.0 : f64} : tensor<?x12xf32>
  // CHECK: cmf.activate gelu_tanh(%{{.*}}) : tensor<?x12xf32>
  %c = cmf.activate gelu_tanh(%b) : tensor<?x12xf32>
  // CHECK: cmf.glu swigluoai(%{{.*}}, %{{.*}}) {alpha = 1.702000e+00 : f64, limit = 7.000000e+00 : f64} : tensor<?x12xf32>
  %d = cmf.glu swigluoai(%c, %x) {alpha = 1.702 : f64, limit = 7.0 : f64} : tensor<?x12xf32>
  // CHECK: cmf.glu situ(%{{.*}}, %{{.*}}) {alpha = 1.000000e+00 : f64, limit = 0.000000e+00 : f64} : tensor<?x12xf32>
  %e = cmf.glu situ(%d, %x) {alpha = 1.0 : f64, limit = 0.0 : f64} : tensor<?x12xf32>
  // CHECK: cmf.attention {{.*}}temperature_length = 1.600000e+01 : f64, temperature_scale = 1.000000e-01 : f64
  %f = cmf.attention %q, %q, %q {layer = 0 : i64, heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, v_dim = 4 : i64,
      scale = 0.5 : f64, temperature_length = 16.0 : f64, temperature_scale = 0.1 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// -----

func.func @lonely_bias(%x: tensor<?x12xf32>) {
  %w = cmf.weight "w" : !cmf.weight<12, f32>
  // expected-error @below {{has a bias, but no weight}}
  %a = cmf.layer_norm %x bias(%w) {eps = 1.0e-5 : f64} : tensor<?x12xf32> bias(!cmf.weight<12, f32>)
  return
}

// -----

func.func @short_weight(%x: tensor<?x12xf32>) {
  %w = cmf.weight "w" : !cmf.weight<11, f32>
  // expected-error @below {{normalizes 12 features, but its weight}}
  %a = cmf.layer_norm %x weight(%w) {eps = 1.0e-5 : f64} : tensor<?x12xf32> weight(!cmf.weight<11, f32>)
  return
}

// -----

func.func @no_gate(%x: tensor<?x12xf32>) {
  // expected-error @below {{knows no activation situ: it needs a gate}}
  %a = cmf.activate situ(%x) : tensor<?x12xf32>
  return
}

// -----

func.func @numbers(%x: tensor<?x12xf32>) {
  // expected-error @below {{of activation swigluoai needs 'alpha' and 'limit'}}
  %a = cmf.glu swigluoai(%x, %x) : tensor<?x12xf32>
  return
}

// -----

func.func @no_numbers(%x: tensor<?x12xf32>) {
  // expected-error @below {{of activation silu takes neither 'alpha' nor 'limit'}}
  %a = cmf.glu silu(%x, %x) {alpha = 1.0 : f64, limit = 1.0 : f64} : tensor<?x12xf32>
  return
}

// -----

func.func @half_a_temperature(%q: tensor<?x8xf32>) {
  // expected-error @below {{needs both of 'temperature_length' and 'temperature_scale', or neither}}
  %a = cmf.attention %q, %q, %q {layer = 0 : i64, heads = 2 : i64, kv_heads = 2 : i64, head_dim = 4 : i64, v_dim = 4 : i64,
      scale = 0.5 : f64, temperature_length = 16.0 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return
}

// The operations with recurrent state print as they parse.
// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s
// RUN: cortiq-opt %s --mlir-print-op-generic | cortiq-opt | FileCheck %s

// CHECK-LABEL: func.func @convolutions
func.func @convolutions(%x: tensor<?x12xf32>, %bcx: tensor<?x36xf32>, %taps: !cmf.weight<12x3, f16>) {
  // CHECK: cmf.causal_conv %{{.*}}, %{{.*}} {silu, state = 0 : i64} : tensor<?x12xf32>, !cmf.weight<12x3, f16>
  %u = cmf.causal_conv %x, %taps {state = 0 : i64, silu} : tensor<?x12xf32>, !cmf.weight<12x3, f16>
  // CHECK: cmf.short_conv %{{.*}}, %{{.*}} {state = 1 : i64} : tensor<?x36xf32>, !cmf.weight<12x3, f16> -> tensor<?x12xf32>
  %y = cmf.short_conv %bcx, %taps {state = 1 : i64} : tensor<?x36xf32>, !cmf.weight<12x3, f16> -> tensor<?x12xf32>
  return
}

// CHECK-LABEL: func.func @gated_delta
func.func @gated_delta(%qkv: tensor<?x64xf32>, %z: tensor<?x32xf32>, %a: tensor<?x4xf32>, %h: !cmf.weight<4, f16>,
                       %n: !cmf.weight<8, f32>) {
  // CHECK: cmf.gated_delta %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {eps = 9.99{{.*}} : f64, key_dim = 8 : i64, key_heads = 2 : i64, rates, sigmoid_gate, state = 0 : i64, tiled, value_dim = 8 : i64, value_heads = 4 : i64} : (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !cmf.weight<4, f16>, !cmf.weight<4, f16>, !cmf.weight<8, f32>) -> tensor<?x32xf32>
  %y = cmf.gated_delta %qkv, %z, %a, %a, %h, %h, %n
    {state = 0 : i64, key_heads = 2 : i64, value_heads = 4 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f64,
     tiled, rates, sigmoid_gate}
    : (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !cmf.weight<4, f16>, !cmf.weight<4, f16>,
       !cmf.weight<8, f32>) -> tensor<?x32xf32>
  return
}

// CHECK-LABEL: func.func @kda
func.func @kda(%x: tensor<?x16xf32>, %b: tensor<?x2xf32>, %d: !cmf.weight<8, f32>, %dt: !cmf.weight<16, f32>) {
  // CHECK: cmf.kda {{.*}} {eps = {{.*}} : f64, heads = 2 : i64, key_dim = 8 : i64, lower_bound = -5.000000e+00 : f64, state = 0 : i64, value_dim = 8 : i64} : (
  %y = cmf.kda %x, %x, %x, %x, %b, %x, %d, %dt, %d
    {state = 0 : i64, heads = 2 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f64, lower_bound = -5.0 : f64}
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x16xf32>,
       !cmf.weight<8, f32>, !cmf.weight<16, f32>, !cmf.weight<8, f32>) -> tensor<?x16xf32>
  return
}

// CHECK-LABEL: func.func @vmf_phase
func.func @vmf_phase(%t: tensor<?x8xf32>, %v: tensor<?x16xf32>, %g: tensor<?x2xf32>, %d: !cmf.weight<16, f32>) {
  // CHECK: cmf.vmf_phase %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {heads = 2 : i64, phases = 4 : i64, state = 0 : i64, value_dim = 8 : i64}
  %y = cmf.vmf_phase %t, %t, %v, %d {state = 0 : i64, heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64}
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x16xf32>, !cmf.weight<16, f32>) -> tensor<?x16xf32>
  // CHECK: cmf.vmf_phase %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} gate(%{{.*}}) {delta, heads = 2 : i64
  %w = cmf.vmf_phase %t, %t, %v, %d gate(%g) {state = 1 : i64, heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64, delta}
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x16xf32>, !cmf.weight<16, f32>, tensor<?x2xf32>) -> tensor<?x16xf32>
  return
}

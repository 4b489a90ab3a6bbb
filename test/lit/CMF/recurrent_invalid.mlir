// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

func.func @taps(%x: tensor<?x12xf32>, %taps: !cmf.weight<8x3, f16>) {
  // expected-error @below {{convolves 12 channels, but its taps '!cmf.weight<8x3, f16>' have 8 rows}}
  %u = cmf.causal_conv %x, %taps {state = 0 : i64} : tensor<?x12xf32>, !cmf.weight<8x3, f16>
  return
}

// -----

func.func @one_tap(%x: tensor<?x12xf32>, %taps: !cmf.weight<12x1, f16>) {
  // expected-error @below {{has 1 tap a channel: a convolution needs at least 2}}
  %u = cmf.causal_conv %x, %taps {state = 0 : i64} : tensor<?x12xf32>, !cmf.weight<12x1, f16>
  return
}

// -----

func.func @thirds(%x: tensor<?x24xf32>, %taps: !cmf.weight<12x3, f16>) {
  // expected-error @below {{takes 24 features, not three times its 12 channels}}
  %u = cmf.short_conv %x, %taps {state = 0 : i64} : tensor<?x24xf32>, !cmf.weight<12x3, f16> -> tensor<?x12xf32>
  return
}

// -----

func.func @heads(%qkv: tensor<?x64xf32>, %z: tensor<?x24xf32>, %a: tensor<?x3xf32>, %h: !cmf.weight<3, f32>, %n: !cmf.weight<8, f32>) {
  // expected-error @below {{has 3 value heads, not a multiple of its 2 key heads}}
  %y = cmf.gated_delta %qkv, %z, %a, %a, %h, %h, %n
    {state = 0 : i64, key_heads = 2 : i64, value_heads = 3 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f64}
    : (tensor<?x64xf32>, tensor<?x24xf32>, tensor<?x3xf32>, tensor<?x3xf32>, !cmf.weight<3, f32>, !cmf.weight<3, f32>,
       !cmf.weight<8, f32>) -> tensor<?x24xf32>
  return
}

// -----

func.func @sizes(%qkv: tensor<?x60xf32>, %z: tensor<?x32xf32>, %a: tensor<?x4xf32>, %h: !cmf.weight<4, f32>, %n: !cmf.weight<8, f32>) {
  // expected-error @below {{has 60 features of 'qkv', but its heads ask for 64}}
  %y = cmf.gated_delta %qkv, %z, %a, %a, %h, %h, %n
    {state = 0 : i64, key_heads = 2 : i64, value_heads = 4 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f64}
    : (tensor<?x60xf32>, tensor<?x32xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !cmf.weight<4, f32>, !cmf.weight<4, f32>,
       !cmf.weight<8, f32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @decay(%x: tensor<?x16xf32>, %b: tensor<?x2xf32>, %d: !cmf.weight<5, f32>, %dt: !cmf.weight<16, f32>, %n: !cmf.weight<8, f32>) {
  // expected-error @below {{has 5 values of 'decay', which are neither one a head (2) nor one a channel (8) nor both}}
  %y = cmf.kda %x, %x, %x, %x, %b, %x, %d, %dt, %n
    {state = 0 : i64, heads = 2 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f64}
    : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x16xf32>,
       !cmf.weight<5, f32>, !cmf.weight<16, f32>, !cmf.weight<8, f32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @state(%t: tensor<?x8xf32>, %v: tensor<?x16xf32>, %d: !cmf.weight<16, f32>) {
  // expected-error @below {{'state' must not be negative}}
  %y = cmf.vmf_phase %t, %t, %v, %d {state = -1 : i64, heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64}
    : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x16xf32>, !cmf.weight<16, f32>) -> tensor<?x16xf32>
  return
}

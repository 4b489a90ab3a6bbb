// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s

// The operations with recurrent state print as they parse.

kernel.weight @taps f32 verbatim 12 x 3
kernel.weight @four f32 verbatim 1 x 4
kernel.weight @eight f32 verbatim 1 x 8
kernel.weight @sixteen f32 verbatim 1 x 16
// CHECK: kernel.state @conv {elements = 24 : i64}
kernel.state @conv {elements = 24}
kernel.state @short {elements = 24}
kernel.state @delta {elements = 256}
kernel.state @kda {elements = 128}
kernel.state @phase {elements = 128}
kernel.program @program {
  %x12 = kernel.alloc {input} : !kernel.buffer<f32, 12>
  %u12 = kernel.alloc : !kernel.buffer<f32, 12>
  %x36 = kernel.alloc {input} : !kernel.buffer<f32, 36>
  %y12 = kernel.alloc : !kernel.buffer<f32, 12>
  %x64 = kernel.alloc {input} : !kernel.buffer<f32, 64>
  %x32 = kernel.alloc {input} : !kernel.buffer<f32, 32>
  %x4 = kernel.alloc {input} : !kernel.buffer<f32, 4>
  %y32 = kernel.alloc : !kernel.buffer<f32, 32>
  %x16 = kernel.alloc {input} : !kernel.buffer<f32, 16>
  %x8 = kernel.alloc {input} : !kernel.buffer<f32, 8>
  %x2 = kernel.alloc {input} : !kernel.buffer<f32, 2>
  %y16 = kernel.alloc : !kernel.buffer<f32, 16>
  %z16 = kernel.alloc : !kernel.buffer<f32, 16>
  kernel.stage "all" {
    // CHECK: kernel.causal_conv %{{.*}} taps(@taps) state(@conv) -> %{{.*}} {silu, taps = 3 : i64} : !kernel.buffer<f32, 12>, !kernel.buffer<f32, 12>
    kernel.causal_conv %x12 taps(@taps) state(@conv) -> %u12 {taps = 3 : i64, silu} : !kernel.buffer<f32, 12>, !kernel.buffer<f32, 12>
    // CHECK: kernel.short_conv %{{.*}} taps(@taps) state(@short) -> %{{.*}} {taps = 3 : i64}
    kernel.short_conv %x36 taps(@taps) state(@short) -> %y12 {taps = 3 : i64} : !kernel.buffer<f32, 36>, !kernel.buffer<f32, 12>
    // CHECK: kernel.gated_delta %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} decay(@four) dt_bias(@four) norm(@eight) state(@delta) -> %{{.*}} {eps = {{.*}} : f32, key_dim = 8 : i64, key_heads = 2 : i64, tiled, value_dim = 8 : i64, value_heads = 4 : i64}
    kernel.gated_delta %x64, %x32, %x4, %x4 decay(@four) dt_bias(@four) norm(@eight) state(@delta) -> %y32
      {key_heads = 2 : i64, value_heads = 4 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f32, tiled}
      : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 32>, !kernel.buffer<f32, 4>, !kernel.buffer<f32, 4>, !kernel.buffer<f32, 32>
    // CHECK: kernel.kda %{{.*}} decay(@eight) dt_bias(@sixteen) norm(@eight) state(@kda) -> %{{.*}} {eps = {{.*}} : f32, heads = 2 : i64, key_dim = 8 : i64, lower_bound = -5.000000e+00 : f32, value_dim = 8 : i64}
    kernel.kda %x16, %x16, %x16, %x16, %x2, %x16 decay(@eight) dt_bias(@sixteen) norm(@eight) state(@kda) -> %y16
      {heads = 2 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f32, lower_bound = -5.0 : f32}
      : !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>,
        !kernel.buffer<f32, 2>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
    // CHECK: kernel.vmf_phase %{{.*}}, %{{.*}}, %{{.*}} gate(%{{.*}} : !kernel.buffer<f32, 2>) decay(@sixteen) state(@phase) -> %{{.*}} {delta, heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64}
    kernel.vmf_phase %x8, %x8, %x16 gate(%x2 : !kernel.buffer<f32, 2>) decay(@sixteen) state(@phase) -> %z16
      {heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64, delta}
      : !kernel.buffer<f32, 8>, !kernel.buffer<f32, 8>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
  }
  kernel.return %u12 : !kernel.buffer<f32, 12>
}

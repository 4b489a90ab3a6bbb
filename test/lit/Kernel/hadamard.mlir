// kernel.hadamard and kernel.resonance print as they parse, and refuse what does not fit; so does a ring without a window.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

kernel.weight @m f32 verbatim 1 x 32
kernel.weight @u f32 verbatim 2 x 32
kernel.weight @b f32 verbatim 1 x 1
// CHECK: kernel.kv_layer @kv0 {k_dim = 8 : i64, kv_heads = 2 : i64, ring, v_dim = 8 : i64, window = 16 : i64}
kernel.kv_layer @kv0 {kv_heads = 2, k_dim = 8, v_dim = 8, window = 16, ring}
// CHECK-LABEL: kernel.program @program
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %a = kernel.alloc : !kernel.buffer<q8a, 32>
  %s = kernel.alloc : !kernel.buffer<f32, 2>
  kernel.stage "transform" {
    // CHECK: kernel.hadamard %{{.*}} act(%{{.*}} : !kernel.buffer<q8a, 32>) {block = 16 : i64, half, negative = array<i1: true,
    kernel.hadamard %x act(%a : !kernel.buffer<q8a, 32>) {block = 16 : i64, half, negative = array<i1: true, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false>} : !kernel.buffer<f32, 32>
  }
  kernel.stage "scores" {
    // CHECK: kernel.resonance %{{.*}} means [@m, @m] bases [@u, @u] biases [@b, @b] shells [@b] -> %{{.*}} {rank = 2 : i64} : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 2>
    kernel.resonance %x means [@m, @m] bases [@u, @u] biases [@b, @b] shells [@b] -> %s {rank = 2 : i64} : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 2>
  }
  kernel.return %s : !kernel.buffer<f32, 2>
}

// -----

// expected-error @below {{has a 'ring' without a 'window'}}
kernel.kv_layer @kv0 {kv_heads = 2, k_dim = 8, v_dim = 8, ring}

// -----

kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 4>
  kernel.stage "transform" {
    // expected-error @below {{has blocks of 4 and 3 signs for 4 elements}}
    kernel.hadamard %x out(%x : !kernel.buffer<f32, 4>) {block = 4 : i64, negative = array<i1: true, false, false>} : !kernel.buffer<f32, 4>
  }
  kernel.return %x : !kernel.buffer<f32, 4>
}

// -----

kernel.weight @m f32 verbatim 1 x 32
kernel.weight @b f32 verbatim 1 x 1
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %s = kernel.alloc : !kernel.buffer<f32, 2>
  kernel.stage "scores" {
    // expected-error @below {{has 2 means, 0 bases of rank 2, 2 biases and 0 shells for 2 experts}}
    kernel.resonance %x means [@m, @m] biases [@b, @b] -> %s {rank = 2 : i64} : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 2>
  }
  kernel.return %s : !kernel.buffer<f32, 2>
}

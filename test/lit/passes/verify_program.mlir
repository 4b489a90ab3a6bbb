// RUN: cortiq-opt %s --split-input-file --kernel-verify-program --verify-diagnostics

kernel.program @program attributes {arena_bytes_per_token = 256 : i64} {
  %x = kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 32>
  %y = kernel.alloc {offset = 128 : i64} : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    kernel.add %x, %x -> %y : !kernel.buffer<f32, 32>
    // expected-error @+1 {{touches a buffer that another call of its stage writes}}
    kernel.logits %y {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %y : !kernel.buffer<f32, 32>
}

// -----
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    // expected-error @+1 {{reads a buffer that no earlier stage wrote}}
    kernel.add %x, %x -> %y : !kernel.buffer<f32, 32>
  }
  kernel.return %y : !kernel.buffer<f32, 32>
}

// -----
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  // expected-error @+1 {{names a buffer that no stage wrote}}
  kernel.return %y : !kernel.buffer<f32, 32>
}

// -----
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 32>
  kernel.stage head "a" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  // expected-error @+1 {{comes after a head stage}}
  kernel.stage "b" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @program {
  // expected-error @+1 {{has no place yet: run kernel-plan-memory}}
  %x = kernel.alloc {input} : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @program attributes {arena_bytes_per_token = 64 : i64} {
  // expected-error @+1 {{ends behind the arena}}
  %x = kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @program attributes {arena_bytes_per_token = 256 : i64} {
  %x = kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 32>
  // expected-error @+1 {{overlaps another buffer that is alive at the same time}}
  %y = kernel.alloc {offset = 64 : i64} : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    kernel.add %x, %x -> %y : !kernel.buffer<f32, 32>
  }
  kernel.return %y : !kernel.buffer<f32, 32>
}

// -----
kernel.weight @w q8_0 r16 16 x 32
kernel.program @program attributes {arena_bytes_per_token = 256 : i64} {
  %x = kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 32>
  %y = kernel.alloc {offset = 128 : i64} : !kernel.buffer<f32, 16>
  kernel.stage "a" {
    kernel.matmul {
      // expected-error @+1 {{lists no kernels: run kernel-dedupe}}
      kernel.call @w(%x) -> %y <q8_0, r16, k = 32, act = f32, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 16>
    }
  }
  kernel.return %y : !kernel.buffer<f32, 16>
}

// -----
// expected-error @+1 {{must be named @gemv_f32_f32_q8_0_r16_k32_1x16_v3 for its spec}}
kernel.define @k <q8_0, r16, k = 32, tile = 1x16, act = f32, isa = "x86-64-v3">
kernel.program @program attributes {arena_bytes_per_token = 128 : i64} {
  %x = kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 32>
  kernel.stage "a" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

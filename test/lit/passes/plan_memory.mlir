// RUN: cortiq-opt %s --split-input-file --kernel-plan-memory | FileCheck %s

// %p dies when %y is born in a later stage, so they share a place; %x lives from the start (the caller fills it) to its
// last reader; the logits live to the end. Sizes are whole cache lines.

// CHECK: kernel.program @program attributes {arena_bytes_per_token = 512 : i64}
// CHECK: kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 60>
// CHECK: kernel.alloc {offset = 256 : i64} : !kernel.buffer<f32, 60>
// CHECK: kernel.alloc {offset = 0 : i64} : !kernel.buffer<f32, 60>
// CHECK: kernel.alloc {offset = 256 : i64} : !kernel.buffer<f32, 60>
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 60>
  %p = kernel.alloc : !kernel.buffer<f32, 60>
  %y = kernel.alloc : !kernel.buffer<f32, 60>
  %z = kernel.alloc : !kernel.buffer<f32, 60>
  kernel.stage "a" {
    kernel.add %x, %x -> %p : !kernel.buffer<f32, 60>
  }
  kernel.stage "b" {
    kernel.add %p, %p -> %y : !kernel.buffer<f32, 60>
  }
  kernel.stage "c" {
    kernel.add %y, %y -> %z : !kernel.buffer<f32, 60>
  }
  kernel.return %z : !kernel.buffer<f32, 60>
}

// -----

// A runtime may make gates beside their products: %a keeps clear of %x, which those read, though %x is not read any more
// where the gates' stage stands.

// CHECK: kernel.program @gates attributes {arena_bytes_per_token = 1024 : i64}
// CHECK: kernel.alloc {input, offset = 0 : i64} : !kernel.buffer<f32, 60>
// CHECK: kernel.alloc {offset = 256 : i64} : !kernel.buffer<f32, 60>
// CHECK: kernel.alloc {offset = 512 : i64} : !kernel.buffer<f32, 60>
// CHECK: kernel.alloc {offset = 768 : i64} : !kernel.buffer<f32, 60>
kernel.program @gates {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 60>
  %g = kernel.alloc : !kernel.buffer<f32, 60>
  %u = kernel.alloc : !kernel.buffer<f32, 60>
  %a = kernel.alloc : !kernel.buffer<f32, 60>
  kernel.stage "products" {
    kernel.add %x, %x -> %g : !kernel.buffer<f32, 60>
    kernel.add %x, %x -> %u : !kernel.buffer<f32, 60>
  }
  kernel.stage "gates" {
    kernel.glu silu %g up(%u : !kernel.buffer<f32, 60>) out(%a : !kernel.buffer<f32, 60>) : !kernel.buffer<f32, 60>
  }
  kernel.return %a : !kernel.buffer<f32, 60>
}

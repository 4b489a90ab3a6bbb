// RUN: cortiq-opt %s --kernel-merge-stages | FileCheck %s

// Two quantizes of one input need no barrier between them; what reads their results comes after; a head stage does not
// join one that all tokens run.
kernel.weight @a q8_2f r16 32 x 32
kernel.weight @b q8_2f r16 32 x 32

// CHECK: kernel.stage "first" {
// CHECK-NEXT: kernel.logits
// CHECK: kernel.stage "a input, b input" {
// CHECK-NEXT: kernel.quantize %{{.*}} column_scale(@a)
// CHECK-NEXT: kernel.quantize %{{.*}} column_scale(@b)
// CHECK-NEXT: }
// CHECK: kernel.stage "sum" {
// CHECK: kernel.stage head "other" {
// CHECK-NOT: kernel.stage
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 32>
  %p = kernel.alloc : !kernel.buffer<f32, 32>
  %q = kernel.alloc : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 32>
  %z = kernel.alloc {input} : !kernel.buffer<f32, 32>
  kernel.stage "first" {
    kernel.logits %x {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.stage "a input" {
    kernel.quantize %x column_scale(@a) out(%p : !kernel.buffer<f32, 32>) : !kernel.buffer<f32, 32>
  }
  kernel.stage "b input" {
    kernel.quantize %x column_scale(@b) out(%q : !kernel.buffer<f32, 32>) : !kernel.buffer<f32, 32>
  }
  kernel.stage "sum" {
    kernel.add %p, %q -> %y : !kernel.buffer<f32, 32>
  }
  kernel.stage head "other" {
    kernel.logits %z {multiplier = 2.0 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %y : !kernel.buffer<f32, 32>
}

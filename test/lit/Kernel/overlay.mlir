// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s

kernel.weight @n f32 verbatim 1 x 32
kernel.weight @skill.s.n f32 verbatim 1 x 32
// CHECK: kernel.weight @blend.n f32 verbatim 1 x 32 {kernel.blend = {parts = [@n, @skill.s.n], skills = array<i64: -1, 0>}}
kernel.weight @blend.n f32 verbatim 1 x 32 {kernel.blend = {parts = [@n, @skill.s.n], skills = array<i64: -1, 0>}}
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 32>
  %z = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "norm" {
    // CHECK: kernel.choose base {
    // CHECK-NEXT: kernel.norm %{{.*}} weight(@n)
    // CHECK: } cases [-1, 0] {
    // CHECK-NEXT: kernel.norm %{{.*}} weight(@blend.n)
    // CHECK: }, {
    // CHECK-NEXT: kernel.norm %{{.*}} weight(@skill.s.n)
    kernel.choose base {
      kernel.norm %x weight(@n) out(%y : !kernel.buffer<f32, 32>) {eps = 0.5 : f32} : !kernel.buffer<f32, 32>
    } cases [-1, 0] {
      kernel.norm %x weight(@blend.n) out(%y : !kernel.buffer<f32, 32>) {eps = 0.5 : f32} : !kernel.buffer<f32, 32>
    }, {
      kernel.norm %x weight(@skill.s.n) out(%y : !kernel.buffer<f32, 32>) {eps = 0.5 : f32} : !kernel.buffer<f32, 32>
    }
  }
  kernel.stage "rest" {
    // CHECK: kernel.layer_gate %{{.*}}, %{{.*}} -> %{{.*}} {layer = 3 : i64} : !kernel.buffer<f32, 32>
    kernel.layer_gate %x, %y -> %y {layer = 3 : i64} : !kernel.buffer<f32, 32>
    // CHECK: kernel.place %{{.*}} out(%{{.*}} : !kernel.buffer<f32, 64>) {from = array<i64: 0, -1
    kernel.place %x out(%z : !kernel.buffer<f32, 64>) {from = array<i64: 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1,
      0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1,
      0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1, 0, -1, 1, -1>} : !kernel.buffer<f32, 32>
    // CHECK: kernel.tap %{{.*}} {kernel.gate = 1 : i64, layer = 3 : i64} : !kernel.buffer<f32, 32>
    kernel.tap %x {layer = 3 : i64, kernel.gate = 1 : i64} : !kernel.buffer<f32, 32>
  }
  kernel.return %y : !kernel.buffer<f32, 32>
}

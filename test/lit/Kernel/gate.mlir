// kernel.gate prints as it parses, and refuses what does not fit.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

// CHECK-LABEL: kernel.program @program
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  %g = kernel.alloc : !kernel.buffer<f32, 4>
  %a = kernel.alloc : !kernel.buffer<q8a, 64>
  kernel.stage "gate" {
    // CHECK: kernel.gate %{{.*}}, %{{.*}} <softplus> out(%{{.*}} : !kernel.buffer<f32, 64>) act(%{{.*}} : !kernel.buffer<q8a, 64>) : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 4>
    kernel.gate %x, %g <softplus> out(%x : !kernel.buffer<f32, 64>) act(%a : !kernel.buffer<q8a, 64>) : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 4>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  %g = kernel.alloc : !kernel.buffer<f32, 5>
  kernel.stage "gate" {
    // expected-error @below {{has 5 gates, which do not divide 64 elements}}
    kernel.gate %x, %g <sigmoid> out(%x : !kernel.buffer<f32, 64>) : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 5>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "gate" {
    // expected-error @below {{writes nothing: give it an output buffer}}
    kernel.gate %x, %x <sigmoid> : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 64>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

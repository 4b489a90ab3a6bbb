// What the stages of a mixture of experts refuse.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

kernel.program @program {
  %ids = kernel.alloc : !kernel.buffer<i32, 2>
  %plan = kernel.alloc : !kernel.buffer<i32, 9>
  %x = kernel.alloc : !kernel.buffer<f32, 4>
  kernel.stage "plan" {
    // expected-error @below {{the plan must hold 14 elements, not 9}}
    kernel.moe_plan %ids -> %plan {experts = 4 : i64} : !kernel.buffer<i32, 2>, !kernel.buffer<i32, 9>
  }
  kernel.return %x : !kernel.buffer<f32, 4>
}

// -----

kernel.program @program {
  %l = kernel.alloc : !kernel.buffer<f32, 4>
  %ids = kernel.alloc : !kernel.buffer<i32, 5>
  %w = kernel.alloc : !kernel.buffer<f32, 5>
  kernel.stage "route" {
    // expected-error @below {{chooses 5 of 4 experts}}
    kernel.moe_route %l <softmax> -> %ids, %w : !kernel.buffer<f32, 4>, !kernel.buffer<i32, 5>, !kernel.buffer<f32, 5>
  }
  kernel.return %l : !kernel.buffer<f32, 4>
}

// -----

kernel.program @program {
  %plan = kernel.alloc : !kernel.buffer<i32, 14>
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %p = kernel.alloc : !kernel.buffer<q8a, 32, records = 2>
  kernel.stage "gather" {
    // expected-error @below {{needs quantized activations to copy}}
    kernel.moe_gather %plan f32(%x : !kernel.buffer<f32, 32>) act(%p : !kernel.buffer<q8a, 32, records = 2>) {experts = 4 : i64} : !kernel.buffer<i32, 14>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----

kernel.weight @w q4_0 r16 16 x 32
kernel.program @program {
  %plan = kernel.alloc : !kernel.buffer<i32, 8>
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %p = kernel.alloc : !kernel.buffer<f32, 32, records = 2>
  %g = kernel.alloc : !kernel.buffer<f32, 8, records = 2>
  kernel.stage "experts" {
    kernel.moe_matmul %plan {
      // expected-error @below {{writes 16 rows into 8 elements}}
      kernel.expert @w(%p) -> %g <q4_0, r16, k = 32, act = f32, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32, records = 2>) -> !kernel.buffer<f32, 8, records = 2>
    } : !kernel.buffer<i32, 8>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----

kernel.program @program {
  // A value of one record is no place for the pairs of two choices.
  %plan = kernel.alloc : !kernel.buffer<i32, 14>
  %w = kernel.alloc : !kernel.buffer<f32, 2>
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "combine" {
    // expected-error @below {{the weights must hold 1 elements, not 2}}
    kernel.moe_combine %plan, %w, %x -> %x {experts = 4 : i64} : !kernel.buffer<i32, 14>, !kernel.buffer<f32, 2>, !kernel.buffer<f32, 32>, !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

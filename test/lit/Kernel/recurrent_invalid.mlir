// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

kernel.weight @taps f32 verbatim 12 x 3
kernel.state @conv {elements = 36}
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 12>
  %y = kernel.alloc : !kernel.buffer<f32, 12>
  kernel.stage "conv" {
    // expected-error @below {{keeps 24 numbers, but its state @conv holds 36}}
    kernel.causal_conv %x taps(@taps) state(@conv) -> %y {taps = 3 : i64} : !kernel.buffer<f32, 12>, !kernel.buffer<f32, 12>
  }
  kernel.return %y : !kernel.buffer<f32, 12>
}

// -----

kernel.weight @taps f32 verbatim 12 x 3
kernel.state @conv {elements = 24}
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 12>
  %y = kernel.alloc : !kernel.buffer<f32, 12>
  kernel.stage "conv" {
    // expected-error @below {{the input must hold 36 elements, not 12}}
    kernel.short_conv %x taps(@taps) state(@conv) -> %y {taps = 3 : i64} : !kernel.buffer<f32, 12>, !kernel.buffer<f32, 12>
  }
  kernel.return %y : !kernel.buffer<f32, 12>
}

// -----

kernel.weight @taps f32 verbatim 12 x 4
kernel.state @conv {elements = 24}
kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 12>
  %y = kernel.alloc : !kernel.buffer<f32, 12>
  kernel.stage "conv" {
    // expected-error @below {{the taps must be an f32 vector of 36 values, but @taps is f32 with 12 x 4}}
    kernel.causal_conv %x taps(@taps) state(@conv) -> %y {taps = 3 : i64} : !kernel.buffer<f32, 12>, !kernel.buffer<f32, 12>
  }
  kernel.return %y : !kernel.buffer<f32, 12>
}

// -----

kernel.program @program {
  %x = kernel.alloc {input} : !kernel.buffer<f32, 8>
  %y = kernel.alloc : !kernel.buffer<f32, 16>
  kernel.stage "phase" {
    // expected-error @below {{names @gone, which is no weight of this module}}
    kernel.vmf_phase %x, %x, %y decay(@gone) state(@gone) -> %y {heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64}
      : !kernel.buffer<f32, 8>, !kernel.buffer<f32, 8>, !kernel.buffer<f32, 16>, !kernel.buffer<f32, 16>
  }
  kernel.return %y : !kernel.buffer<f32, 16>
}

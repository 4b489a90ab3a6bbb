// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{has codec 'q9_9', which is no weight codec}}
kernel.weight @w q9_9 r16 16 x 32

// -----
// expected-error @+1 {{adds a value to its weights, which only f32 vectors can do}}
kernel.weight @w q8_0 r16 16 x 32 {add = 1.0 : f32}

// -----
// expected-error @+1 {{needs a spec with a tile}}
kernel.define @k <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3">

// -----
// expected-error @+1 {{a tile has at least one token and 1 to 16 rows, not 1x17}}
kernel.define @k <q4_0, r16, k = 32, tile = 1x17, act = q8a, isa = "x86-64-v3">

// -----
// expected-error @+1 {{'r32' is no layout: use verbatim or r16}}
kernel.define @k <q4_0, r32, k = 32, tile = 1x16, act = q8a, isa = "x86-64-v3">

// -----
// expected-error @+1 {{'u8' is no weight codec}}
kernel.define @k <u8, r16, k = 32, tile = 1x16, act = q8a, isa = "x86-64-v3">

// -----
// expected-error @+1 {{has no frequencies}}
kernel.rope_table @r []

// -----
kernel.program @p {
  // expected-error @+1 {{has offset 32, which is no multiple of 64}}
  %x = kernel.alloc {offset = 32 : i64} : !kernel.buffer<f32, 32>
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @p {
  // expected-error @+1 {{a buffer holds between 1 and 2^40 elements, not 0}}
  %x = kernel.alloc : !kernel.buffer<f32, 0>
  kernel.return %x : !kernel.buffer<f32, 0>
}

// -----
// expected-error @+1 {{must end in kernel.return}}
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
}

// -----
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  // expected-error @+1 {{is empty}}
  kernel.stage "s" {
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "s" {
    // expected-error @+1 {{names @w, which is no weight of this module}}
    kernel.embed @w -> %x : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.weight @w q8_0 r16 64 x 64
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "s" {
    // expected-error @+1 {{the output must hold 64 elements, not 32}}
    kernel.embed @w -> %x : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "s" {
    // expected-error @+1 {{writes nothing: give it an output buffer}}
    kernel.norm %x {eps = 0.5 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.weight @n f32 verbatim 1 x 16
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  kernel.stage "s" {
    // expected-error @+1 {{the weight must be an f32 vector of 32 values, but @n is f32 with 1 x 16}}
    kernel.norm %x weight(@n) out(%x : !kernel.buffer<f32, 32>) {eps = 0.5 : f32} : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.weight @w q8_0 r16 16 x 32
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %a = kernel.alloc : !kernel.buffer<q8a, 32>
  kernel.stage "s" {
    // expected-error @+1 {{takes column scales from @w, which is q8_0 and has none}}
    kernel.quantize %x column_scale(@w) act(%a : !kernel.buffer<q8a, 32>) : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 16>
  kernel.stage "s" {
    // expected-error @+1 {{needs buffers of one length, found 32 and 16 elements}}
    kernel.glu silu %x out(%y : !kernel.buffer<f32, 16>) : !kernel.buffer<f32, 32>
  }
  kernel.return %x : !kernel.buffer<f32, 32>
}

// -----
kernel.weight @w q4_0 r16 16 x 32
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 16>
  kernel.stage "s" {
    kernel.matmul {
      // expected-error @+1 {{reads f32 activations, its spec says q8a}}
      kernel.call @w(%x) -> %y <q4_0, r16, k = 32, act = q8a, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 16>
    }
  }
  kernel.return %y : !kernel.buffer<f32, 16>
}

// -----
kernel.weight @w q8_0 r16 16 x 32
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 16>
  kernel.stage "s" {
    kernel.matmul {
      // expected-error @+1 {{has a spec that does not fit @w: q8_0 r16 16 x 32}}
      kernel.call @w(%x) -> %y <q4_0, r16, k = 32, act = f32, isa = "x86-64-v3"> : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 16>
    }
  }
  kernel.return %y : !kernel.buffer<f32, 16>
}

// -----
kernel.weight @w q8_0 r16 20 x 32
kernel.define @k <q8_0, r16, k = 32, tile = 1x16, act = f32, isa = "x86-64-v3">
kernel.program @p {
  %x = kernel.alloc : !kernel.buffer<f32, 32>
  %y = kernel.alloc : !kernel.buffer<f32, 20>
  kernel.stage "s" {
    kernel.matmul {
      // expected-error @+1 {{lacks kernels for a short last group: the matrix has 20 rows}}
      kernel.call @w(%x) -> %y <q8_0, r16, k = 32, act = f32, isa = "x86-64-v3"> kernels [@k] tails [] : (!kernel.buffer<f32, 32>) -> !kernel.buffer<f32, 20>
    }
  }
  kernel.return %y : !kernel.buffer<f32, 20>
}

// -----
kernel.kv_layer @kv0 {kv_heads = 3, k_dim = 8, v_dim = 8}
kernel.program @p {
  %q = kernel.alloc : !kernel.buffer<f32, 32>
  %k = kernel.alloc : !kernel.buffer<f32, 24>
  kernel.stage "s" {
    // expected-error @+1 {{cannot share 3 key heads between 4 query heads}}
    kernel.attention_prep %q, %k, %k cache(@kv0) {heads = 4 : i64, head_dim = 8 : i64}
      : !kernel.buffer<f32, 32>, !kernel.buffer<f32, 24>, !kernel.buffer<f32, 24>
  }
  kernel.return %q : !kernel.buffer<f32, 32>
}

// The operations on heads and columns of the kernel dialect print as they parse, and refuse what does not fit.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

kernel.weight @w f16 verbatim 32 x 16
kernel.weight @b f32 verbatim 1 x 64
// CHECK-LABEL: kernel.program @program
kernel.program @program {
  %a = kernel.alloc : !kernel.buffer<f32, 16>
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  %k = kernel.alloc : !kernel.buffer<f32, 128>
  kernel.stage "heads" {
    // CHECK: kernel.concat_heads %{{.*}}, %{{.*}} -> %{{.*}} {heads = 4 : i64} : !kernel.buffer<f32, 16>, !kernel.buffer<f32, 64>, !kernel.buffer<f32, 128>
    kernel.concat_heads %a, %x -> %k {heads = 4 : i64} : !kernel.buffer<f32, 16>, !kernel.buffer<f32, 64>, !kernel.buffer<f32, 128>
  }
  kernel.stage "matmul" {
    kernel.matmul {
      // CHECK: kernel.call @w(%{{.*}}) -> %{{.*}} <{{.*}}> {input_column = 48 : i64, out_column = 32 : i64}
      kernel.call @w(%x) -> %k <f16, verbatim, k = 16, act = f32, isa = "x86-64-v3"> {input_column = 48 : i64, out_column = 32 : i64}
        : (!kernel.buffer<f32, 64>) -> !kernel.buffer<f32, 128>
    }
  }
  kernel.stage "norm" {
    // CHECK: kernel.norm %{{.*}} weight(@b) bias(@b) out(%{{.*}} : !kernel.buffer<f32, 64>) {centered, eps = 9.99999974E-6 : f32} : !kernel.buffer<f32, 64>
    kernel.norm %x weight(@b) bias(@b) out(%x : !kernel.buffer<f32, 64>) {centered, eps = 1.0e-5 : f32} : !kernel.buffer<f32, 64>
  }
  kernel.stage "clusters" {
    // CHECK: kernel.cluster_logits %{{.*}}, %{{.*}} : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 16>
    kernel.cluster_logits %x, %a : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 16>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.program @program {
  %a = kernel.alloc : !kernel.buffer<f32, 16>
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "heads" {
    // expected-error @below {{cannot make 64 features of 3 heads from 16 and 64}}
    kernel.concat_heads %a, %x -> %x {heads = 3 : i64} : !kernel.buffer<f32, 16>, !kernel.buffer<f32, 64>, !kernel.buffer<f32, 64>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.weight @w f16 verbatim 32 x 16
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "matmul" {
    kernel.matmul {
      // expected-error @below {{the input must hold 65 elements, not 64}}
      kernel.call @w(%x) -> %x <f16, verbatim, k = 16, act = f32, isa = "x86-64-v3"> {input_column = 49 : i64}
        : (!kernel.buffer<f32, 64>) -> !kernel.buffer<f32, 64>
    }
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.weight @w f16 verbatim 32 x 16
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "matmul" {
    kernel.matmul {
      // expected-error @below {{ends at column 65 of an output of 64 elements}}
      kernel.call @w(%x) -> %x <f16, verbatim, k = 16, act = f32, isa = "x86-64-v3"> {out_column = 33 : i64}
        : (!kernel.buffer<f32, 64>) -> !kernel.buffer<f32, 64>
    }
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.weight @b f32 verbatim 1 x 64
kernel.program @program {
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "norm" {
    // expected-error @below {{adds a bias, which only a centered norm has}}
    kernel.norm %x bias(@b) out(%x : !kernel.buffer<f32, 64>) {eps = 1.0e-5 : f32} : !kernel.buffer<f32, 64>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

// -----

kernel.program @program {
  %a = kernel.alloc : !kernel.buffer<f32, 15>
  %x = kernel.alloc : !kernel.buffer<f32, 64>
  kernel.stage "clusters" {
    // expected-error @below {{has 15 clusters, which do not divide 64 logits}}
    kernel.cluster_logits %x, %a : !kernel.buffer<f32, 64>, !kernel.buffer<f32, 15>
  }
  kernel.return %x : !kernel.buffer<f32, 64>
}

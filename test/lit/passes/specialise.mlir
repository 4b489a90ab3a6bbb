// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" | FileCheck %s
// RUN: cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=fast" | cortiq-opt --cmf-specialise="numerics=exact" | FileCheck %s --check-prefix=EXACT
// RUN: not cortiq-opt %s --cmf-specialise="target=z80 numerics=fast" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not cortiq-opt %s --cmf-specialise="numerics=fast" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not cortiq-opt %s --cmf-specialise="target=x86-64-v3 numerics=quick" 2>&1 | FileCheck %s --check-prefix=NUMERICS

// CHECK: #cmf.target<name = "x86-64-v3", features = ["avx", "avx2", "bmi2", "f16c", "fma"], vector_bytes = 32, token_tiles = [1,
// CHECK: module attributes {cmf.numerics = "fast", cmf.target = #target}
// CHECK: cmf.fused_matmul {{.*}} {arm = #cmf.arm<fast>}
// An option that is left out keeps what the module has.
// EXACT: module attributes {cmf.numerics = "exact", cmf.target = #target}
// EXACT: cmf.fused_matmul {{.*}} {arm = #cmf.arm<exact>}
// TARGET: there is no target 'z80'; use native or one of: x86-64-v3
// NONE: has no 'cmf.target': name a target with cmf-specialise{target=…}
// NUMERICS: numerics must be fast or exact

module {
  func.func @forward(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
    %w = cmf.weight "w.weight" : !cmf.weight<16x32, q4_0>
    %y = cmf.fused_matmul %x weights(%w) : tensor<?x32xf32> weights(!cmf.weight<16x32, q4_0>)
    return %y : tensor<?x16xf32>
  }
}

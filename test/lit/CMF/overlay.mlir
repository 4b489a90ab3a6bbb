// Skills, masks and taps print as they parse.
// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s
// RUN: cortiq-opt %s --mlir-print-op-generic | cortiq-opt | FileCheck %s

// CHECK-LABEL: func.func @overlay
func.func @overlay(%x: tensor<?x32xf32>, %g: tensor<?x6xf32>) -> tensor<?x32xf32> {
  %b = cmf.weight "w" : !cmf.weight<4x32, q8_row>
  // CHECK: cmf.weight "skill.s.w" {rows = #cmf.rows<of = 8, picks = [0, 3, 4, 7]>} : !cmf.weight<4x32, q4_tiled>
  %s = cmf.weight "skill.s.w" {rows = #cmf.rows<of = 8, picks = [0, 3, 4, 7]>} : !cmf.weight<4x32, q4_tiled>
  // CHECK: cmf.overlay %{{.*}}, %{{.*}} {skills = array<i64: 1>} : !cmf.weight<4x32, q8_row>, !cmf.weight<4x32, q4_tiled>
  %w = cmf.overlay %b, %s {skills = array<i64: 1>} : !cmf.weight<4x32, q8_row>, !cmf.weight<4x32, q4_tiled>
  %d = cmf.dequant %w : !cmf.weight<4x32, q8_row>
  %y = cmf.matmul %x, %d : tensor<?x32xf32>, tensor<4x32xf32>
  // CHECK: cmf.glu silu(%{{.*}}, %{{.*}}) {cmf.mask = #cmf.mask<ffn, layer = 3, first = 0, group = 1>} : tensor<?x6xf32>
  %u = cmf.glu silu(%g, %g) {cmf.mask = #cmf.mask<ffn, layer = 3, first = 0, group = 1>} : tensor<?x6xf32>
  // CHECK: cmf.place %{{.*}} {from = array<i64: 0, -1, 1>} : tensor<?x6xf32> -> tensor<?x3xf32>
  %p = cmf.place %u {from = array<i64: 0, -1, 1>} : tensor<?x6xf32> -> tensor<?x3xf32>
  // CHECK: %[[H:.*]] = cmf.layer_gate %{{.*}}, %{{.*}} {layer = 3 : i64} : tensor<?x32xf32>
  %h = cmf.layer_gate %x, %x {layer = 3 : i64} : tensor<?x32xf32>
  // CHECK: cmf.tap %[[H]] {layer = 3 : i64} : tensor<?x32xf32>
  cmf.tap %h {layer = 3 : i64} : tensor<?x32xf32>
  return %h : tensor<?x32xf32>
}

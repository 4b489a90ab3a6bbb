// What is no overlay.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

func.func @shape(%b: !cmf.weight<4x32, f32>, %s: !cmf.weight<8x32, f32>) {
  // expected-error @below {{replaces '!cmf.weight<4x32, f32>' by another shape, '!cmf.weight<8x32, f32>'}}
  %w = cmf.overlay %b, %s {skills = array<i64: 0>} : !cmf.weight<4x32, f32>, !cmf.weight<8x32, f32>
  return
}

// -----

func.func @twice(%b: !cmf.weight<4x32, f32>) {
  // expected-error @below {{names skill 2 twice, or none by it}}
  %w = cmf.overlay %b, %b, %b {skills = array<i64: 2, 2>} : !cmf.weight<4x32, f32>, !cmf.weight<4x32, f32>, !cmf.weight<4x32, f32>
  return
}

// -----

func.func @count(%b: !cmf.weight<4x32, f32>) {
  // expected-error @below {{has 1 alternatives of 2 skills}}
  %w = cmf.overlay %b, %b {skills = array<i64: 0, 1>} : !cmf.weight<4x32, f32>, !cmf.weight<4x32, f32>
  return
}

// -----

func.func @columns(%x: tensor<?x2xf32>) {
  // expected-error @below {{takes column 2 of 2}}
  %y = cmf.place %x {from = array<i64: 0, 2>} : tensor<?x2xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @picks() {
  // expected-error @below {{picks row 8 of a tensor that has 8}}
  %w = cmf.weight "w" {rows = #cmf.rows<of = 8, picks = [0, 8]>} : !cmf.weight<2x32, f32>
  return
}

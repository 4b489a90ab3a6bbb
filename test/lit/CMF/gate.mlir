// cmf.gate prints as it parses, and refuses gates that do not divide the features.
// RUN: cortiq-opt %s --split-input-file --verify-diagnostics | cortiq-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @gates
func.func @gates(%x: tensor<?x12xf32>, %one: tensor<?x1xf32>, %heads: tensor<?x4xf32>) {
  // CHECK: cmf.gate %{{.*}}, %{{.*}} <sigmoid> : tensor<?x12xf32>, tensor<?x1xf32>
  %a = cmf.gate %x, %one <sigmoid> : tensor<?x12xf32>, tensor<?x1xf32>
  // CHECK: cmf.gate %{{.*}}, %{{.*}} <softplus> : tensor<?x12xf32>, tensor<?x4xf32>
  %b = cmf.gate %a, %heads <softplus> : tensor<?x12xf32>, tensor<?x4xf32>
  // CHECK: cmf.gate %{{.*}}, %{{.*}} <sigmoid> : tensor<?x12xf32>, tensor<?x12xf32>
  %c = cmf.gate %b, %x <sigmoid> : tensor<?x12xf32>, tensor<?x12xf32>
  return
}

// -----

func.func @uneven(%x: tensor<?x12xf32>, %g: tensor<?x5xf32>) {
  // expected-error @below {{has 5 gates, which do not divide 12 features}}
  %a = cmf.gate %x, %g <sigmoid> : tensor<?x12xf32>, tensor<?x5xf32>
  return
}

// RUN: cortiq-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: vec.kernel @products
vec.kernel @products(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %acc = vec.load %p[0] : vector<4xi32>
  %w = vec.load %p[16] : vector<16xi8>
  %x = vec.load %p[32] : vector<16xi8>
  // CHECK: vec.interleave %{{.*}}, %{{.*}} bytes 4 : vector<16xi8>
  %low = vec.interleave %w, %x bytes 4 : vector<16xi8>
  // CHECK: vec.interleave %{{.*}}, %{{.*}} bytes 8 high : vector<16xi8>
  %high = vec.interleave %w, %x bytes 8 high : vector<16xi8>
  // CHECK: vec.signed_dot4 %{{.*}}, %{{.*}}, %{{.*}} : vector<4xi32>, vector<16xi8>
  %a = vec.signed_dot4 %acc, %low, %high : vector<4xi32>, vector<16xi8>
  // CHECK: vec.dot8_pairs %{{.*}}, %{{.*}}, %{{.*}} : vector<4xi32>, vector<16xi8>
  %b = vec.dot8_pairs %a, %low, %high : vector<4xi32>, vector<16xi8>
  // CHECK: vec.deinterleave %{{.*}}, %{{.*}} odd : vector<4xi32>
  %c = vec.deinterleave %a, %b odd : vector<4xi32>
  vec.store %c, %p[0] : vector<4xi32>
}

// -----

vec.kernel @wrong_ratio(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %acc = vec.load %p[0] : vector<4xi32>
  %w = vec.load %p[16] : vector<32xi8>
  // expected-error @+1 {{has 4 bytes of an operand to a lane of the result}}
  %a = vec.signed_dot4 %acc, %w, %w : vector<4xi32>, vector<32xi8>
}

// -----

vec.kernel @wide_pairs(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %acc = vec.load %p[0] : vector<8xi32>
  %w = vec.load %p[16] : vector<32xi8>
  // expected-error @+1 {{takes vectors of 128 bits}}
  %a = vec.dot8_pairs %acc, %w, %w : vector<8xi32>, vector<32xi8>
}

// -----

vec.kernel @odd_groups(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %w = vec.load %p[16] : vector<16xi8>
  // expected-error @+1 {{takes groups of 4 or 8 bytes, not 2}}
  %a = vec.interleave %w, %w bytes 2 : vector<16xi8>
}

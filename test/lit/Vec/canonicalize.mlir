// RUN: cortiq-opt %s --canonicalize --cse --loop-invariant-code-motion | FileCheck %s

// CHECK-LABEL: vec.kernel @pointers
vec.kernel @pointers(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %zero = vec.index 0
  // Constant offsets add up, and adding nothing is nothing.
  // CHECK: %[[P:.*]] = vec.load_ptr
  // CHECK-NEXT: %[[Q:.*]] = vec.ptr_add %[[P]], 96
  // CHECK-NEXT: %[[V:.*]] = vec.load %[[Q]][0]
  // CHECK-NEXT: vec.store %[[V]], %[[P]][0]
  %a = vec.ptr_add %p, 64
  %b = vec.ptr_add %a, 32
  %c = vec.ptr_offset %b, %zero * 144
  %v = vec.load %c[0] : vector<8xi32>
  %d = vec.ptr_add %p, 0
  vec.store %v, %d[0] : vector<8xi32>
}

// CHECK-LABEL: vec.kernel @casts
vec.kernel @casts(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // CHECK: %[[V:.*]] = vec.load %
  // CHECK-NEXT: vec.store %[[V]]
  %v = vec.load %p[0] : vector<8xi32>
  %b = vec.bitcast %v : vector<8xi32> to vector<32xi8>
  %w = vec.bitcast %b : vector<32xi8> to vector<16xi16>
  %x = vec.bitcast %w : vector<16xi16> to vector<8xi32>
  vec.store %x, %p[0] : vector<8xi32>
}

// Pure ops leave the loop; loads stay, because the store might write what they read.
// CHECK-LABEL: vec.kernel @invariants
vec.kernel @invariants(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %n = vec.load_index %args[24]
  %lo = vec.index 0
  // CHECK: vec.constant dense<15>
  // CHECK: vec.ptr_offset
  // CHECK: vec.loop
  // CHECK-NEXT: vec.load
  // CHECK-NEXT: vec.and
  // CHECK-NEXT: vec.store
  vec.loop %i = %lo to %n step 1 {
    %mask = vec.constant dense<15> : vector<32xi8>
    %q = vec.ptr_offset %p, %n * 32
    %v = vec.load %q[0] : vector<32xi8>
    %w = vec.and %v, %mask : vector<32xi8>
    vec.store %w, %q[0] : vector<32xi8>
  }
}

// A table is found once, before the loop.
// CHECK-LABEL: vec.kernel @tables
vec.kernel @tables(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %n = vec.load_index %args[24]
  %lo = vec.index 0
  // CHECK: %[[T:.*]] = vec.table
  // CHECK-NOT: vec.table
  // CHECK: vec.loop
  // CHECK: vec.gather %[[T]][0]
  // CHECK: vec.gather %[[T]][2]
  vec.loop %i = %lo to %n step 1 {
    %v = vec.load %p[0] : vector<8xi32>
    %t = vec.table dense<[1, 2, 3, 4]> : tensor<4xi16>
    %u = vec.table dense<[1, 2, 3, 4]> : tensor<4xi16>
    %a = vec.gather %t[0], %v * 2 : vector<8xi32> -> vector<8xi32>
    %b = vec.gather %u[2], %v * 2 : vector<8xi32> -> vector<8xi32>
    %w = vec.add %a, %b : vector<8xi32>
    vec.store %w, %p[0] : vector<8xi32>
  }
}

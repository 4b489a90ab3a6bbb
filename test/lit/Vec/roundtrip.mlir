// RUN: cortiq-opt %s | cortiq-opt | FileCheck %s

// CHECK-LABEL: vec.kernel @memory(%arg0: !vec.ptr) attributes {isa = "x86-64-v3"}
vec.kernel @memory(%args: !vec.ptr) attributes {isa = "x86-64-v3"} {
  // CHECK: %[[P:.*]] = vec.load_ptr %arg0[0]
  %p = vec.load_ptr %args[0]
  // CHECK: %[[N:.*]] = vec.load_index %arg0[24]
  %n = vec.load_index %args[24]
  // CHECK: vec.ptr_add %[[P]], 64
  %q = vec.ptr_add %p, 64
  // CHECK: %[[R:.*]] = vec.ptr_offset %{{.*}}, %[[N]] * 144
  %r = vec.ptr_offset %q, %n * 144
  // CHECK: vec.load %[[R]][32] : vector<8xf32>
  %v = vec.load %r[32] : vector<8xf32>
  // CHECK: vec.load %[[R]][-4] {lanes = 3 : i64} : vector<32xi8>
  %t = vec.load %r[-4] {lanes = 3 : i64} : vector<32xi8>
  // CHECK: vec.load_splat %[[P]][4] : vector<8xi32>
  %s = vec.load_splat %p[4] : vector<8xi32>
  // CHECK: vec.gather %[[P]][8], %{{.*}} * 4 : vector<8xi32> -> vector<8xf32>
  %g = vec.gather %p[8], %s * 4 : vector<8xi32> -> vector<8xf32>
  // CHECK: vec.read_index %[[P]][4]
  %m = vec.read_index %p[4]
  // CHECK: vec.table dense<[0, 1, 4, 9]> : tensor<4xi16>
  %squares = vec.table dense<[0, 1, 4, 9]> : tensor<4xi16>
  // CHECK: vec.prefetch %[[P]][512]
  vec.prefetch %p[512]
  // CHECK: vec.prefetch %[[P]][576] near
  vec.prefetch %p[576] near
  // CHECK: vec.store %{{.*}}, %[[P]][0] : vector<8xf32>
  vec.store %v, %p[0] : vector<8xf32>
  // CHECK: vec.store %{{.*}}, %[[P]][32] {lanes = 3 : i64} : vector<32xi8>
  vec.store %t, %p[32] {lanes = 3 : i64} : vector<32xi8>
  // CHECK: vec.return
  vec.return
}

// CHECK-LABEL: vec.kernel @lanes
vec.kernel @lanes(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %w = vec.load %p[0] : vector<32xi8>
  // CHECK: vec.constant dense<15> : vector<32xi8>
  %mask = vec.constant dense<15> : vector<32xi8>
  // CHECK: vec.bitcast %{{.*}} : vector<32xi8> to vector<16xi16>
  %h = vec.bitcast %w : vector<32xi8> to vector<16xi16>
  // CHECK: vec.and %{{.*}}, %{{.*}} : vector<32xi8>
  %0 = vec.and %w, %mask : vector<32xi8>
  // CHECK: vec.or
  %1 = vec.or %w, %mask : vector<32xi8>
  // CHECK: vec.xor
  %2 = vec.xor %w, %mask : vector<32xi8>
  // CHECK: vec.and_not
  %3 = vec.and_not %w, %mask : vector<32xi8>
  // CHECK: vec.shl %{{.*}}, 4 : vector<16xi16>
  %4 = vec.shl %h, 4 : vector<16xi16>
  // CHECK: vec.shr_u %{{.*}}, 4 : vector<16xi16>
  %5 = vec.shr_u %h, 4 : vector<16xi16>
  // CHECK: vec.shr_s %{{.*}}, 15 : vector<16xi16>
  %6 = vec.shr_s %h, 15 : vector<16xi16>
  // CHECK: vec.shr_v %{{.*}}, %{{.*}} : vector<8xi32>
  %v = vec.bitcast %w : vector<32xi8> to vector<8xi32>
  %17 = vec.shr_v %v, %v : vector<8xi32>
  // CHECK: vec.select_bits %{{.*}}, 4, %{{.*}}, %{{.*}} : vector<8xi32>, vector<8xi32>
  %18 = vec.select_bits %v, 4, %17, %v : vector<8xi32>, vector<8xi32>
  // CHECK: vec.mul_bits %{{.*}}, 3, %{{.*}}, %{{.*}} : vector<8xi32>, vector<8xf32>
  %19 = vec.bitcast %w : vector<32xi8> to vector<8xf32>
  %20 = vec.mul_bits %18, 3, %19, %19 : vector<8xi32>, vector<8xf32>
  // CHECK: vec.add %{{.*}}, %{{.*}} : vector<16xi16>
  %7 = vec.add %4, %5 : vector<16xi16>
  // CHECK: vec.sub
  %8 = vec.sub %7, %6 : vector<16xi16>
  // CHECK: vec.mul
  %9 = vec.mul %8, %6 : vector<16xi16>
  // CHECK: vec.abs %{{.*}} : vector<32xi8>
  %10 = vec.abs %w : vector<32xi8>
  // CHECK: vec.sign %{{.*}}, %{{.*}} : vector<32xi8>
  %11 = vec.sign %0, %w : vector<32xi8>
  // CHECK: vec.lookup16 %{{.*}}, %{{.*}} : vector<32xi8>
  %12 = vec.lookup16 %1, %0 : vector<32xi8>
  // CHECK: vec.dot2 %{{.*}}, %{{.*}} {umax = 15 : i64} : vector<32xi8> -> vector<16xi16>
  %13 = vec.dot2 %0, %w {umax = 15 : i64} : vector<32xi8> -> vector<16xi16>
  // CHECK: vec.dot2 %{{.*}}, %{{.*}} {umax = 255 : i64, xmax = 3 : i64} : vector<32xi8> -> vector<16xi16>
  %dot2_by_three = vec.dot2 %0, %w {umax = 255 : i64, xmax = 3 : i64} : vector<32xi8> -> vector<16xi16>
  // CHECK: vec.pair_add %{{.*}} : vector<16xi16> -> vector<8xi32>
  %14 = vec.pair_add %13 : vector<16xi16> -> vector<8xi32>
  // CHECK: vec.dot4 %{{.*}}, %{{.*}}, %{{.*}} {umax = 255 : i64} : vector<8xi32>, vector<32xi8>
  %15 = vec.dot4 %14, %w, %w {umax = 255 : i64} : vector<8xi32>, vector<32xi8>
  // CHECK: vec.mul_pairs %{{.*}}, %{{.*}} : vector<16xi16> -> vector<8xi32>
  %16 = vec.mul_pairs %13, %h : vector<16xi16> -> vector<8xi32>
  vec.return
}

// CHECK-LABEL: vec.kernel @floats
vec.kernel @floats(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %b = vec.load %p[0] : vector<8xi8>
  %h = vec.load %p[0] : vector<8xf16>
  // CHECK: vec.convert %{{.*}} unsigned : vector<8xi8> to vector<8xi32>
  %i = vec.convert %b unsigned : vector<8xi8> to vector<8xi32>
  // CHECK: vec.convert %{{.*}} : vector<8xi32> to vector<8xf32>
  %f = vec.convert %i : vector<8xi32> to vector<8xf32>
  // CHECK: vec.convert %{{.*}} : vector<8xf16> to vector<8xf32>
  %g = vec.convert %h : vector<8xf16> to vector<8xf32>
  // CHECK: vec.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>
  %0 = vec.fma %f, %g, %f : vector<8xf32>
  // CHECK: vec.fmin
  %1 = vec.fmin %0, %g : vector<8xf32>
  // CHECK: vec.fmax
  %2 = vec.fmax %1, %f : vector<8xf32>
  // CHECK: vec.div
  %3 = vec.div %2, %f : vector<8xf32>
  // CHECK: vec.reduce_add %{{.*}} : vector<8xf32>
  %4 = vec.reduce_add %3 : vector<8xf32>
  vec.return
}

// CHECK-LABEL: vec.kernel @loops
vec.kernel @loops(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // CHECK: %[[LO:.*]] = vec.index 0
  %lo = vec.index 0
  %hi = vec.load_index %args[24]
  %zero = vec.constant dense<0.0> : vector<8xf32>
  // CHECK: vec.loop %[[I:.*]] = %[[LO]] to %{{.*}} step 1 {
  // CHECK-NEXT: vec.prefetch
  // CHECK-NEXT: }
  vec.loop %i = %lo to %hi step 1 {
    vec.prefetch %p[0]
  }
  // CHECK: %{{.*}}:2 = vec.loop %{{.*}} = %{{.*}} to %{{.*}} step 2 iter_args(%[[A:.*]] = %{{.*}}, %[[Q:.*]] = %{{.*}}) -> (vector<8xf32>, !vec.ptr) {
  %r:2 = vec.loop %i = %lo to %hi step 2 iter_args(%a = %zero, %q = %p) -> (vector<8xf32>, !vec.ptr) {
    %v = vec.load %q[0] : vector<8xf32>
    %n = vec.add %a, %v : vector<8xf32>
    %q1 = vec.ptr_add %q, 32
    // CHECK: vec.yield %{{.*}}, %{{.*}} : vector<8xf32>, !vec.ptr
    vec.yield %n, %q1 : vector<8xf32>, !vec.ptr
  }
  vec.return
}

// CHECK-LABEL: vec.kernel @tiles
vec.kernel @tiles(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // CHECK: vec.tile_config rows [16, 16, 8] bytes [64, 32, 64]
  vec.tile_config rows [16, 16, 8] bytes [64, 32, 64]
  // CHECK: vec.tile_zero 0
  vec.tile_zero 0
  // CHECK: vec.tile_load 1, %{{.*}}[64] stride 128
  vec.tile_load 1, %p[64] stride 128
  vec.tile_load 2, %p[0] stride 64
  // CHECK: vec.tile_dot 0, 1, 2
  vec.tile_dot 0, 1, 2
  // CHECK: vec.tile_dot_bf16 0, 1, 2
  vec.tile_dot_bf16 0, 1, 2
  %x = vec.load %p[0] : vector<16xf32>
  // CHECK: vec.pack_bf16 %{{.*}}, %{{.*}} : vector<16xf32> to vector<32xbf16>
  %y = vec.pack_bf16 %x, %x : vector<16xf32> to vector<32xbf16>
  vec.store %y, %p[64] : vector<32xbf16>
  // CHECK: vec.tile_store 0, %{{.*}}[0] stride 64
  vec.tile_store 0, %p[0] stride 64
  // CHECK: vec.tile_release
  vec.tile_release
  vec.return
}

// CHECK-LABEL: vec.kernel @bytes
vec.kernel @bytes(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %a = vec.load %p[0] : vector<64xi8>
  %b = vec.load %p[64] : vector<64xi8>
  // CHECK: vec.lookup64 %{{.*}}, %{{.*}} : vector<64xi8>
  %0 = vec.lookup64 %a, %b : vector<64xi8>
  // CHECK: vec.lookup128 %{{.*}}, %{{.*}}, %{{.*}} : vector<64xi8>
  %1 = vec.lookup128 %0, %a, %b : vector<64xi8>
  // CHECK: vec.select_negative %{{.*}}, %{{.*}}, %{{.*}} : vector<64xi8>
  %2 = vec.select_negative %1, %a, %0 : vector<64xi8>
  // CHECK: vec.blend_bits %{{.*}}, %{{.*}}, %{{.*}} : vector<64xi8>
  %3 = vec.blend_bits %2, %a, %1 : vector<64xi8>
  // CHECK: vec.bit_fields %{{.*}}, %{{.*}} : vector<64xi8>
  %4 = vec.bit_fields %3, %2 : vector<64xi8>
  // CHECK: vec.load_repeated %{{.*}}[16] : vector<32xi8>
  %5 = vec.load_repeated %p[16] : vector<32xi8>
  vec.return
}

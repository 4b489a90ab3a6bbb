// RUN: cortiq-opt %s --split-input-file --verify-diagnostics

vec.kernel @too_many_lanes(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // expected-error @+1 {{'vec.load' op 'lanes' is 9, but has to be within 1 and the vector's 8}}
  %v = vec.load %p[0] {lanes = 9 : i64} : vector<8xf32>
}

// -----

vec.kernel @no_lanes(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<8xf32>
  // expected-error @+1 {{'lanes' is 0}}
  vec.store %v, %p[0] {lanes = 0 : i64} : vector<8xf32>
}

// -----

vec.kernel @odd_width(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // expected-error @+1 {{vector of 32, 64, 128, 256 or 512 bits}}
  %v = vec.load %p[0] : vector<3xf32>
}

// -----

vec.kernel @odd_lane(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // expected-error @+1 {{vector of 32, 64, 128, 256 or 512 bits}}
  %v = vec.load %p[0] : vector<4xi64>
}

// -----

vec.kernel @field_offset(%args: !vec.ptr) {
  // expected-error @+1 {{field offset 4 is not a multiple of 8 at or above 0}}
  %p = vec.load_ptr %args[4]
}

// -----

vec.kernel @field_elsewhere(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // expected-error @+1 {{reads only the kernel's argument block}}
  %q = vec.load_index %p[0]
}

// -----

vec.kernel @scale(%args: !vec.ptr) {
  %n = vec.load_index %args[0]
  // expected-error @+1 {{scale is 0, but has to be at least 1}}
  %p = vec.ptr_offset %args, %n * 0
}

// -----

vec.kernel @gather_scale(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %i = vec.load %p[0] : vector<8xi32>
  // expected-error @+1 {{scale is 3, but has to be 1, 2, 4 or 8}}
  %v = vec.gather %p[0], %i * 3 : vector<8xi32> -> vector<8xf32>
}

// -----

vec.kernel @gather_lanes(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %i = vec.load %p[0] : vector<8xi32>
  // expected-error @+1 {{needs one index for each result lane}}
  %v = vec.gather %p[0], %i * 4 : vector<8xi32> -> vector<4xf32>
}

// -----

vec.kernel @bitcast(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<8xi32>
  // expected-error @+1 {{keeps the number of bits, but goes from 256 to 128}}
  %w = vec.bitcast %v : vector<8xi32> to vector<16xi8>
}

// -----

vec.kernel @shift(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<16xi16>
  // expected-error @+1 {{shifts lanes of 16 bits by 16; the amount is within 0 and 15}}
  %w = vec.shl %v, 16 : vector<16xi16>
}

// -----

vec.kernel @byte_shift(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<32xi8>
  // expected-error @+1 {{must be vector of 32, 64, 128, 256 or 512 bits of i16 or i32 lanes}}
  %w = vec.shr_u %v, 4 : vector<32xi8>
}

// -----

vec.kernel @table(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<8xi8>
  // expected-error @+1 {{needs at least 128 bits, the size of its table}}
  %w = vec.lookup16 %v, %v : vector<8xi8>
}

// -----

vec.kernel @saturates(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<32xi8>
  // expected-error @+1 {{umax is 130, but pair sums stay within i16 only for 1 to 129}}
  %w = vec.dot2 %v, %v {umax = 130 : i64} : vector<32xi8> -> vector<16xi16>
}

// -----

vec.kernel @saturates_by_both(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<32xi8>
  // expected-error @+1 {{umax is 200, but pair sums stay within i16 only for 1 to 163}}
  %w = vec.dot2 %v, %v {umax = 200 : i64, xmax = 100 : i64} : vector<32xi8> -> vector<16xi16>
}

// -----

vec.kernel @no_signed_byte(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<32xi8>
  // expected-error @+1 {{xmax is 128, but a signed byte's bound is within 1 and 127}}
  %w = vec.dot2 %v, %v {umax = 1 : i64, xmax = 128 : i64} : vector<32xi8> -> vector<16xi16>
}

// -----

vec.kernel @bound(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %a = vec.load %p[0] : vector<8xi32>
  %v = vec.load %p[0] : vector<32xi8>
  // expected-error @+1 {{umax is 256, but an unsigned byte's bound is within 1 and 255}}
  %w = vec.dot4 %a, %v, %v {umax = 256 : i64} : vector<8xi32>, vector<32xi8>
}

// -----

vec.kernel @ratio(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<16xi16>
  // expected-error @+1 {{needs 2 source lanes for each result lane, got 16 for 4}}
  %w = vec.pair_add %v : vector<16xi16> -> vector<4xi32>
}

// -----

vec.kernel @conversion(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<8xf32>
  // expected-error @+1 {{knows no conversion from 'f32' to 'f16'}}
  %w = vec.convert %v : vector<8xf32> to vector<8xf16>
}

// -----

vec.kernel @conversion_lanes(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<16xi8>
  // expected-error @+1 {{keeps the number of lanes, but goes from 16 to 8}}
  %w = vec.convert %v : vector<16xi8> to vector<8xi32>
}

// -----

vec.kernel @unsigned_float(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<8xi32>
  // expected-error @+1 {{takes 'unsigned' only when it widens i8 or i16 lanes}}
  %w = vec.convert %v unsigned : vector<8xi32> to vector<8xf32>
}

// -----

vec.kernel @step(%args: !vec.ptr) {
  %n = vec.load_index %args[0]
  // expected-error @+1 {{step is 0, but has to be at least 1}}
  vec.loop %i = %n to %n step 0 {
  }
}

// -----

vec.kernel @yields(%args: !vec.ptr) {
  %n = vec.load_index %args[0]
  %p = vec.load_ptr %args[8]
  // expected-error @+1 {{0-th region iter_arg and 0-th yielded value have different type: '!vec.ptr' != 'index'}}
  %r = vec.loop %i = %n to %n step 1 iter_args(%q = %p) -> (!vec.ptr) {
    vec.yield %i : index
  }
}

// -----

vec.kernel @float_table(%args: !vec.ptr) {
  // expected-error @+1 {{takes a dense list of i8, i16, i32 or i64 entries}}
  %t = vec.table dense<[1.0, 2.0]> : tensor<2xf32>
}

// -----

vec.kernel @square_table(%args: !vec.ptr) {
  // expected-error @+1 {{takes a dense list of i8, i16, i32 or i64 entries}}
  %t = vec.table dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
}

// -----

vec.kernel @equal_table(%args: !vec.ptr) {
  // expected-error @+1 {{has one value only; a vec.constant serves}}
  %t = vec.table dense<7> : tensor<16xi8>
}

// -----

vec.kernel @no_such_tile(%args: !vec.ptr) {
  // expected-error @+1 {{there is no tile 8; tiles are 0 to 7}}
  vec.tile_zero 8
}

// -----

vec.kernel @equal_tiles(%args: !vec.ptr) {
  // expected-error @+1 {{needs three different tiles}}
  vec.tile_dot 0, 1, 1
}

// -----

vec.kernel @equal_tiles_of_bf16(%args: !vec.ptr) {
  // expected-error @+1 {{needs three different tiles}}
  vec.tile_dot_bf16 2, 1, 2
}

// -----

vec.kernel @pack_to_fewer(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %x = vec.load %p[0] : vector<8xf32>
  // expected-error @+1 {{makes one vector of bf16 of two of f32}}
  %y = vec.pack_bf16 %x, %x : vector<8xf32> to vector<8xbf16>
}

// -----

vec.kernel @long_rows(%args: !vec.ptr) {
  // expected-error @+1 {{a tile has 1 to 16 rows of 4 to 64 bytes in fours, not 16 of 66}}
  vec.tile_config rows [16] bytes [66]
}

// -----

vec.kernel @no_bits(%args: !vec.ptr) {
  %w = vec.constant dense<1> : vector<8xi32>
  // expected-error @+1 {{tests bits 0, but a word has 32, and one must be tested}}
  %r = vec.select_bits %w, 0, %w, %w : vector<8xi32>, vector<8xi32>
}

// -----

vec.kernel @few_words(%args: !vec.ptr) {
  %w = vec.constant dense<1> : vector<4xi32>
  %x = vec.constant dense<1.0> : vector<8xf32>
  // expected-error @+1 {{has as many words as lanes}}
  %r = vec.mul_bits %w, 1, %x, %x : vector<4xi32>, vector<8xf32>
}

// -----

vec.kernel @narrow_table(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<32xi8>
  // expected-error @+1 {{needs 512 bits, not 256}}
  %w = vec.lookup64 %v, %v : vector<32xi8>
}

// -----

vec.kernel @narrow_halves(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  %v = vec.load %p[0] : vector<16xi8>
  // expected-error @+1 {{needs 512 bits, not 128}}
  %w = vec.lookup128 %v, %v, %v : vector<16xi8>
}

// -----

vec.kernel @repeated_in_one_part(%args: !vec.ptr) {
  %p = vec.load_ptr %args[0]
  // expected-error @+1 {{needs 256 or 512 bits, not 128}}
  %v = vec.load_repeated %p[0] : vector<16xi8>
}

// Products of matrices of halves, 16 x 16 by 16 x kSide, summed in f32, on cooperative matrices: what ops/ written on these
// words is when the device has them. common/matrices_plain.glsl has the same words for devices without.
//
// Written for GL_NV_cooperative_matrix, as ops/matmul_cm_i8.glsl says. Starts and strides count elements of the array: of
// halves and of bits of floats in 16 bytes, of floats one by one.

#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

const uint kSide = 8;

#define FACTOR fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define SECOND fcoopmatNV<16, gl_ScopeSubgroup, 16, kSide>
#define SUM fcoopmatNV<32, gl_ScopeSubgroup, 16, kSide>

#define SUM_OF(x) SUM(x)
#define LOAD_FACTOR(m, array, at, stride) coopMatLoadNV(m, array, at, stride, false)
#define LOAD_SECOND(m, array, at, stride) coopMatLoadNV(m, array, at, stride, false)
// The second factor's columns, one behind the other.
#define LOAD_SECOND_COLUMNS(m, array, at, stride) coopMatLoadNV(m, array, at, stride, true)
// One number for all of a row, of an array of floats.
#define LOAD_ROWS(m, array, at) coopMatLoadNV(m, array, at, 0, true)
// A sum of an array of floats, and how many elements of one an invocation has.
#define LOAD_SUM(m, array, at, stride) coopMatLoadNV(m, array, at, stride, false)
const uint kSumElements = 4;
#define STORE_SUM(m, array, at, stride) coopMatStoreNV(m, array, at, stride, false)
#define ADD_PRODUCT(a, b, sum) sum = coopMatMulAddNV(a, b, sum)
#define TIMES_ROWS(sum, m) \
  [[unroll]] for (uint e = 0; e < 4; ++e) \
    sum[e] *= m[e];

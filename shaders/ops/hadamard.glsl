// The Walsh-Hadamard transform of blocks of a row, with the signs of columns in front of it or behind (formats/artifact/artifact.fbs,
// HadamardOp): the additions of the CPU in their order. A workgroup has one block of one token; grid: blocks in x, tokens in z.
// The vector has one bit a column: its sign is -1.

layout(constant_id = SPEC_ROWS) const uint kCount = 32; // values a row
layout(constant_id = SPEC_GROUP) const uint kBlock = 32;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // the result is in 8 bits; blocks are whole groups of 32
layout(constant_id = SPEC_INVERSE) const uint kInverse = 0;
layout(constant_id = SPEC_ROUNDED) const uint kRounded = 0; // to f16: what comes out, and with kInverse what goes in

#include "common/half.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

shared float block[kBlock];

float rounded(float x) { return kRounded != 0 ? rounded_to_half(x) : x; }

float times_sign(float x, uint column) {
  uint word = vu32[push[PUSH_VECTOR] + column / 32];
  return x * (bitfieldExtract(word, int(column % 32), 1) != 0 ? -kScale : kScale);
}

void transform() {
  for (uint near = 1; near < kBlock; near *= 2) {
    barrier();
    for (uint pair = gl_LocalInvocationIndex; pair < kBlock / 2; pair += kLocal) {
      uint low = pair / near * 2 * near + pair % near;
      float a = block[low], b = block[low + near];
      block[low] = a + b;
      block[low + near] = a - b;
    }
  }
  barrier();
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint first = gl_WorkGroupID.x * kBlock;
  for (uint i = gl_LocalInvocationIndex; i < kBlock; i += kLocal) {
    float x = a32[input_row(token) + place_of(first + i, kInOrder)];
    block[i] = kInverse != 0 ? rounded(x) : times_sign(x, first + i);
  }
  transform();
  for (uint i = gl_LocalInvocationIndex; i < kBlock; i += kLocal) {
    block[i] = rounded(kInverse != 0 ? times_sign(block[i], first + i) : block[i]);
    if (kQuantOut == 0)
      a32[out_row(token) + place_of(first + i, kOutOrder)] = block[i];
  }
  if (kQuantOut != 0)
    Q8_STORE_SHARED(block, kBlock / 32, out_row(token), kCount, first / 32)
}

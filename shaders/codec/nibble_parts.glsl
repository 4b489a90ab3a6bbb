// Nibbles that are levels are the only part of what is multiplied (ops/matmul_i8.glsl).
#define CODEC_PARTS
const uint kParts = 1;
const int kPartZero = kZero;
void code_parts(uvec4 codes, out uvec4 parts[kParts]) { parts[0] = codes; }

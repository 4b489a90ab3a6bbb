// mxfp4_ggml: four-bit floats in blocks of 32 with a power of two as scale; levels and scale as ggml reads them.
#include "codec/planes.glsl"

#include "codec/levels16.glsl"

const float kUnit = 1.0;
// 2^(e - 128)
float block_scale(uint e) { return uintBitsToFloat(e < 2 ? 0x00200000u << e : (e - 1) << 23); }

#include "codec/mxfp4_groups.glsl"

#include "codec/float_levels.glsl"

// mxfp4_ggml: four-bit floats in blocks of 32 with a power of two as scale; levels and scale as ggml reads them.
#include "codec/planes.glsl"

#include "codec/levels16.glsl"
#include "codec/mxfp4_values.glsl"

const float kUnit = 1.0;
float block_scale(uint e) { return e8m0_half(e); }

#include "codec/mxfp4_groups.glsl"

#include "codec/float_levels.glsl"

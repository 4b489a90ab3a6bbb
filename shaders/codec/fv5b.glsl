// fv5b: an f32 scale and signed bytes a block of 256. Its planes are those of q8_k.
#include "codec/q8_k.glsl"

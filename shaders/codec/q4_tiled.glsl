// q4_tiled: an f16 scale and 32 nibbles a block of 32. Its planes are those of q4_0.
#include "codec/q4_0.glsl"

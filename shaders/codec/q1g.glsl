// q1g: an f16 scale and signs a block of 128. Its planes are those of q1_0.
#include "codec/q1_0.glsl"

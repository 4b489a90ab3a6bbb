// q4tp: levels of four bits.
#define BANK_BITS 4
#include "bank/ladder.glsl"

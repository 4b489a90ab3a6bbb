// q2tp: levels of two bits.
#define BANK_BITS 2
#include "bank/ladder.glsl"

// The banks that bank_gate_up reads, as q4tp.
#include "bank/segments.glsl"

#define BANK_BITS 4
#define BANK gate_bank
#define BANK_NAME(x) gate_##x
#include "bank/q4tp.glsl"
#undef BANK
#undef BANK_NAME
#define BANK up_bank
#define BANK_NAME(x) up_##x
#include "bank/q4tp.glsl"
#undef BANK
#undef BANK_NAME

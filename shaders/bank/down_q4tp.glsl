// The banks that bank_down reads, as q4tp.
#include "bank/segments.glsl"

#define BANK_BITS 4
#define BANK down_bank
#define BANK_NAME(x) down_##x
#include "bank/q4tp.glsl"
#undef BANK
#undef BANK_NAME

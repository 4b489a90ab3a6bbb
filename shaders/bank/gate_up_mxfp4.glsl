// The banks that bank_gate_up reads, as mxfp4.
#include "bank/segments.glsl"
#include "codec/mxfp4_values.glsl"

#define BANK gate_bank
#define BANK_NAME(x) gate_##x
#include "bank/mxfp4.glsl"
#undef BANK
#undef BANK_NAME
#define BANK up_bank
#define BANK_NAME(x) up_##x
#include "bank/mxfp4.glsl"
#undef BANK
#undef BANK_NAME

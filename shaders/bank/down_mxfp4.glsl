// The banks that bank_down reads, as mxfp4.
#include "bank/segments.glsl"
#include "codec/mxfp4_values.glsl"

#define BANK down_bank
#define BANK_NAME(x) down_##x
#include "bank/mxfp4.glsl"
#undef BANK
#undef BANK_NAME

// Numbers of formats/artifact/shader_abi.h; a unit test holds the two against each other.

#define PUSH_WEIGHT 0
#define PUSH_INPUT 1
#define PUSH_OUT 2
#define PUSH_VECTOR 3
#define PUSH_AUX 4
#define PUSH_INPUT_STRIDE 5
#define PUSH_OUT_STRIDE 6
#define PUSH_AUX_STRIDE 7
#define PUSH_THIRD 8
#define PUSH_THIRD_STRIDE 9
#define PUSH_COSINES 10
#define PUSH_SINES 11
#define PUSH_VECTOR2 12
#define PUSH_HEAD 15

#define STEP_TOKENS 0
#define STEP_POSITION 1
#define STEP_HEAD_FIRST 2
#define STEP_HEAD_COUNT 3
#define STEP_IDS 4

#define SPEC_LOCAL 0
#define SPEC_ROWS 1
#define SPEC_COLS 2
#define SPEC_LANES 3
#define SPEC_TOKENS 4
#define SPEC_TEAM_ROWS 5
#define SPEC_OUT_ORDER 6
#define SPEC_BIAS 7
#define SPEC_RESIDUAL 8
#define SPEC_SCALE 9
#define SPEC_HEADS 10
#define SPEC_KV_HEADS 11
#define SPEC_HEAD_DIM 12
#define SPEC_VALUE_DIM 13
#define SPEC_PAIRS 14
#define SPEC_NORM_FLAGS 15
#define SPEC_EPS 16
#define SPEC_WINDOW 17
#define SPEC_RING 18
#define SPEC_SOFTCAP 19
#define SPEC_SINKS 20
#define SPEC_ACTIVATION 21
#define SPEC_ALPHA 22
#define SPEC_LIMIT 23
#define SPEC_CACHE_HALF 24
#define SPEC_TEMPERATURE_LENGTH 25
#define SPEC_TEMPERATURE_SCALE 26
#define SPEC_ADD 27
#define SPEC_SUM_OUT 28
#define SPEC_CENTERED 29
#define SPEC_WEIGHTED 30
#define SPEC_FUNCTION 31
#define SPEC_GROUP 32

#define NORM_Q 1
#define NORM_K 2
#define NORM_AFTER_ROPE 4
#define NORM_V 8

#define RESULT_IDS 4

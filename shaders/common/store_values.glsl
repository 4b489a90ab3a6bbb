// A row of kCount values, each made by itself: value i is ROW_VALUE(i), zero behind its end. kQuantOut 0: floats in kOutOrder, one
// invocation a value; 1: in 8 bits, kLocal / 8 groups a workgroup; 2: in f16, all by one workgroup. `row` is its start in the
// arena, in words. All of the workgroup come here.

#include "common/half_store.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

#define STORE_VALUES(row)                                                              \
  if (kQuantOut == 2) {                                                                \
    HALF_STORE_ROW(row, kCount)                                                        \
  } else if (kQuantOut != 0) {                                                         \
    Q8_STORE_SPAN(row, kCount, gl_WorkGroupID.x * (kLocal / 8), kLocal / 8)            \
  } else {                                                                             \
    uint own_value = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;              \
    if (own_value < kCount)                                                            \
      a32[(row) + place_of(own_value, kOutOrder)] = ROW_VALUE(own_value);              \
  }

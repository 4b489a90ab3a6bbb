// What all products of a matrix with vectors share: how workgroups divide rows and tokens, and what becomes of the sums.
//
// A team of kLanes invocations computes kTeamRows rows; lane l takes groups l, l + kLanes, … of 32 weights. A row's sum is
// made in the same order for every kTokens and kTeamRows, so its bits do not depend on what stands beside it.
//
// Workgroups: rows in x (and y), chunks of kTokens tokens in z. With kPair a workgroup has the same rows of two matrices,
// of which the second starts at PUSH_WEIGHT2, and the result is activation(first) * second.
//
// With kExperts a token has that many matrices, which moe_route named; they lie kExpertUnits apart. Then kTokens is 1, and z
// counts pairs of token and choice, whose results are rows of their own; or, with kSum, tokens: inputs are the pairs' rows,
// and a token's products are added up with the weights that moe_route gave them. Biases are kRows an expert. With kRoute there
// is one token, and every workgroup makes moe_route's choice itself, from logits; the first one leaves it for others.
//
// With kPlan workgroups in z are moe_plan's tiles: up to kTokens pairs of one expert, whose results are rows of their own.
//
// With kClassed some experts' matrices are of another shape or codec, and the workgroups of their tiles have nothing to do.
//
// With kNormIn the input is a row that still lacks its norm's factor, 1 / sqrt(mean of squares + eps); the sum of squares
// comes in kNormIn parts. With kNormOut the result is prepared for such a product: besides the result itself, the third row
// gets the result times a norm's weights, in lane order, and each workgroup leaves its part of the sum of squares.

layout(constant_id = SPEC_LANES) const uint kLanes = 32;
layout(constant_id = SPEC_TOKENS) const uint kTokens = 1;
layout(constant_id = SPEC_TEAM_ROWS) const uint kTeamRows = 1;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_BIAS) const uint kBias = 0;         // a vector is added to the product
layout(constant_id = SPEC_RESIDUAL) const uint kResidual = 0; // then the same place of the auxiliary row
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;    // the product times this, before all else
layout(constant_id = SPEC_EPS) const float kEps = 1e-6;
layout(constant_id = SPEC_ACTIVATION) const uint kActivation = 0;
layout(constant_id = SPEC_ALPHA) const float kAlpha = 0.0;
layout(constant_id = SPEC_LIMIT) const float kLimit = 0.0;
layout(constant_id = SPEC_PAIR) const uint kPair = 0;
layout(constant_id = SPEC_NORM_OUT) const uint kNormOut = 0;
layout(constant_id = SPEC_NORM_IN) const uint kNormIn = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // 1: what would be in lane order is in 8 bits instead, 2: it is both

layout(constant_id = SPEC_EXPERTS) const uint kExperts = 0;
layout(constant_id = SPEC_SUM) const uint kSum = 0;
layout(constant_id = SPEC_EXPERT_UNITS) const uint kExpertUnits = 0;
layout(constant_id = SPEC_PLAN) const uint kPlan = 0; // 1: inputs are tokens' rows, 2: pairs' rows
layout(constant_id = SPEC_ROUTE) const uint kRoute = 0;
layout(constant_id = SPEC_CLASSED) const uint kClassed = 0;
layout(constant_id = SPEC_SHARED) const uint kShared = 0; // 1: a shared row is added, 2: times the logistic function of its gate
layout(constant_id = SPEC_AHEAD) const uint kAhead = 1; // groups that a lane asks for at a time

const uint kChoices = kExperts != 0 && kSum != 0 ? kExperts : 1; // that one workgroup adds up
const uint kRowsEach = kExperts != 0 && kSum == 0 && kPlan == 0 ? kExperts : 1; // results of a token
const uint kMatrices = kPair != 0 ? 2 : 1;
const uint kTeamSums = kTokens * kTeamRows; // of one matrix
const uint kTeamValues = kTeamSums * kMatrices;
const uint kGroupRows = kLocal / kLanes * kTeamRows;

#include "common/activation.glsl"
#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"
#include "common/reduce.glsl"
#include "common/route.glsl"

// Results of the workgroup, matrix by matrix, token by token.
shared float products[kMatrices * kTokens * kGroupRows];

uint product_lane() { return local_index() % kLanes; }
uint product_row(uint r) {
  return min(group_index() * kGroupRows + local_index() / kLanes * kTeamRows + r, kRows - 1);
}
uint product_token() { return first_token() + gl_WorkGroupID.z / kRowsEach * kTokens; }

// A tile of the plan, its expert at word 0, its first pair at word 1, their number at word 2.
uint plan_word(uint i) { return au32[push[PUSH_ROUTES] + i]; }
uint tile_word(uint i) { return plan_word(4 + 4 * gl_WorkGroupID.z + i); }

// The number of the tile's expert among those whose matrices are bound; all ones where it is not.
uint tile_expert() { return kClassed != 0 ? vu32[push[PUSH_CLASS] + tile_word(0)] : tile_word(0); }

bool product_idle() {
  if (kClassed != 0)
    return gl_WorkGroupID.z >= plan_word(0) || tile_expert() == ~0u;
  return kPlan != 0 ? gl_WorkGroupID.z >= plan_word(0) : gl_WorkGroupID.z / kRowsEach * kTokens >= token_count();
}
// Tokens, or pairs, that this workgroup has, kTokens at most.
uint product_count() {
  return kPlan != 0 ? tile_word(2) : min(kTokens, token_count() - gl_WorkGroupID.z / kRowsEach * kTokens);
}
// The number of a token, or pair.
uint product_item(uint t) {
  return kPlan != 0 ? plan_word(plan_word(1) + tile_word(1) + min(t, tile_word(2) - 1)) : product_token() + t;
}
// The row of an item's result, and of its input for choice c.
uint product_out(uint item) { return kRowsEach > 1 ? item * kRowsEach + gl_WorkGroupID.z % kRowsEach : item; }
uint product_input(uint item, uint c) {
  if (kPlan != 0)
    return kPlan == 1 ? item / kExperts : item;
  return kSum != 0 ? item * kExperts + c : item;
}

// Routes: the numbers of the chosen experts, then their weights.
uint product_expert(uint c) {
  if (kPlan != 0)
    return tile_expert();
  uint choice = kSum != 0 ? c : gl_WorkGroupID.z % kRowsEach;
  return kRoute != 0 ? chosen[choice] : au32[push[PUSH_ROUTES] + product_token() * 2 * kExperts + choice];
}
float product_share(uint c) {
  return kSum != 0 ? a32[push[PUSH_ROUTES] + (product_token() * 2 + 1) * kExperts + c] : 1.0;
}
// Before all else, by all invocations: the choice of experts, and what the end of a product of one token needs, so that
// the end does not wait for memory. Every subgroup adds the parts of the norm's sum for itself, which spares barriers;
// an invocation has a row at most.
const bool kEarly = kTokens == 1 && kGroupRows <= kLocal;
float early_squares = 0.0, early_residual = 0.0, early_weight = 0.0;
float early_bias[2] = float[2](0.0, 0.0);

float squares_part(uint token) {
  uint start = push[PUSH_SQUARES_IN] + token * kNormIn;
  float squares = 0.0;
  for (uint i = gl_SubgroupInvocationID; i < kNormIn; i += gl_SubgroupSize)
    squares += a32[start + i];
  return squares;
}

void product_begin() {
  if (kNormIn != 0 && kTokens == 1)
    early_squares = squares_part(product_token());
  if (kEarly && local_index() < kGroupRows) {
    uint row = min(group_index() * kGroupRows + local_index(), kRows - 1);
    if (kResidual != 0)
      early_residual = a32[aux_row(product_item(0)) + place_of(row, kOutOrder)];
    if (kNormOut != 0)
      early_weight = v32[push[PUSH_VECTOR2] + row];
    if (kBias != 0 && kExperts == 0) {
      early_bias[0] = v32[push[PUSH_VECTOR] + row];
      if (kPair != 0)
        early_bias[1] = v32[push[PUSH_VECTOR2] + row];
    }
  }
  if (kRoute != 0)
    choose_experts(push[PUSH_LOGITS], push[PUSH_ROUTE_BIAS]);
}
// Behind all else, by all invocations: the first workgroup leaves the choice.
void product_end() {
  if (kRoute == 0 || group_index() != 0 || gl_WorkGroupID.z != 0)
    return;
  weigh_experts(push[PUSH_LOGITS], push[PUSH_ROUTE_BIAS], push[PUSH_ROUTE_SCALES]);
  leave_choice(push[PUSH_ROUTES]);
}
uint product_weight(uint m, uint c) {
  uint start = push[m == 0 ? PUSH_WEIGHT : PUSH_WEIGHT2];
  return kExperts != 0 ? start + product_expert(c) * kExpertUnits : start;
}
float product_bias(uint m, uint row) {
  const uint vector = m == 0 ? PUSH_VECTOR : PUSH_VECTOR2;
  if (kExperts == 0)
    return kEarly ? early_bias[m] : v32[push[vector] + row];
  float sum = 0.0;
  for (uint c = 0; c < kChoices; ++c)
    sum = fma(v32[push[vector] + product_expert(c) * kRows + row], product_share(c), sum);
  return sum;
}

// Of a token, from a subgroup's parts of its sum.
float norm_factor(float squares) { return 1.0 / sqrt(subgroup_sum(squares) / float(kCols) + kEps); }

float finished(uint t, uint r, uint row, uint item) {
  float y = products[t * kGroupRows + r];
  if (kBias != 0)
    y += product_bias(0, row);
  if (kPair != 0) {
    float up = products[(kTokens + t) * kGroupRows + r];
    if (kBias != 0)
      up += product_bias(1, row);
    y = gated(y, up, kActivation, kAlpha, kLimit);
  }
  if (kShared != 0) {
    float gate = kShared == 2 ? 1.0 / (1.0 + exp(-a32[push[PUSH_SHARED_GATE]])) : 1.0;
    y = fma(gate, a32[push[PUSH_SHARED] + row], y);
  }
  if (kResidual != 0)
    y += kEarly ? early_residual : a32[aux_row(item) + place_of(row, kOutOrder)];
  return y;
}

uint quantized_row(uint t) {
  uint item = product_item(t);
  return kQuantOut == 2 ? push[PUSH_EIGHT_BITS] : kNormOut != 0 ? third_row(item) : out_row(product_out(item));
}

// Groups of 32 results in 8 bits.
void quantize_products(uint first_row, uint count) {
  barrier();
  const uint each = kGroupRows / 32;
  if (gl_SubgroupSize < 8) {
    for (uint i = local_index(); i < count * each; i += kLocal) {
      uint g = i % each;
      float values[32];
      for (uint v = 0; v < 32; ++v)
        values[v] = products[i / each * kGroupRows + 32 * g + v];
      if (first_row + 32 * g < kRows)
        q8_store(quantized_row(i / each), kRows, first_row / 32 + g, values);
    }
    return;
  }
  uint k = local_index() % 8;
  for (uint first = 0; first < count * each; first += kLocal / 8) {
    uint i = min(first + local_index() / 8, count * each - 1), t = i / each, g = i % each;
    uint at = t * kGroupRows + 32 * g + 4 * k;
    q8_store_eighth(quantized_row(t), kRows, first_row / 32 + g, k,
                    vec4(products[at], products[at + 1], products[at + 2], products[at + 3]),
                    first + local_index() / 8 == i && first_row + 32 * g < kRows);
  }
}

// Called by all invocations of a workgroup when `products` has the sums.
void product_write() {
  barrier();
  uint count = product_count();
  if (kNormIn != 0 && kTokens > 1)
    for (uint t = 0; t < count; ++t) {
      float factor = norm_factor(squares_part(product_token() + t));
      for (uint r = local_index(); r < kMatrices * kGroupRows; r += kLocal)
        products[(r / kGroupRows * kTokens + t) * kGroupRows + r % kGroupRows] *= factor;
      barrier();
    }
  uint first_row = group_index() * kGroupRows;
  for (uint t = 0; t < count; ++t) {
    uint item = product_item(t);
    float squares = 0.0;
    for (uint r = local_index(); r < kGroupRows; r += kLocal) {
      uint row = first_row + r;
      if (row >= kRows) {
        products[t * kGroupRows + r] = 0.0;
        continue;
      }
      float y = finished(t, r, row, item);
      if (kNormOut != 0 || kQuantOut == 0)
        a32[out_row(product_out(item)) + place_of(row, kOutOrder)] = y;
      if (kNormOut != 0) {
        squares = fma(y, y, squares);
        y *= kEarly ? early_weight : v32[push[PUSH_VECTOR2] + row];
        if (kQuantOut != 1)
          a32[third_row(item) + place_of(row, kOrderLanes)] = y;
      }
      products[t * kGroupRows + r] = y;
    }
    if (kNormOut != 0) {
      squares = kGroupRows <= gl_SubgroupSize ? subgroup_sum(squares) : group_sum(squares); // invocations that have a row
      uint groups = (kRows + kGroupRows - 1) / kGroupRows;
      if (local_index() == 0 && group_index() < groups)
        a32[push[PUSH_SQUARES_OUT] + item * groups + group_index()] = squares;
    }
  }
  if (kQuantOut != 0)
    quantize_products(first_row, count);
  product_end();
}

// Called by all invocations of a workgroup with their shares of the sums.
void product_finish(vec4 sums[kTeamValues]) {
  float factor = kNormIn != 0 && kTokens == 1 ? norm_factor(early_squares) : 1.0;
  [[unroll]] for (uint first = 0; first < kTeamValues; first += kAtOnce) {
    const uint count = min(kAtOnce, kTeamValues - first);
    if (first != 0)
      barrier();
    [[unroll]] for (uint v = 0; v < count; ++v)
      leave_part((sums[first + v].x + sums[first + v].z) + (sums[first + v].y + sums[first + v].w), v);
    barrier();
    for (uint i = local_index(); i < count * kTeams; i += kLocal) {
      uint v = first + i / kTeams, t = v % kTeamSums % kTokens, r = i % kTeams * kTeamRows + v % kTeamSums / kTokens;
      float sum = team_sum(i % kTeams, i / kTeams) * kScale;
      products[(v / kTeamSums * kTokens + t) * kGroupRows + r] = kNormIn != 0 && kTokens == 1 ? sum * factor : sum;
    }
  }
  product_write();
}

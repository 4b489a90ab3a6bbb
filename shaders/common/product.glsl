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
// and a token's products are added up with the weights that moe_route gave them. Biases are kRows an expert.
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
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // what would be in lane order is in 8 bits instead

layout(constant_id = SPEC_EXPERTS) const uint kExperts = 0;
layout(constant_id = SPEC_SUM) const uint kSum = 0;
layout(constant_id = SPEC_EXPERT_UNITS) const uint kExpertUnits = 0;

const uint kChoices = kExperts != 0 && kSum != 0 ? kExperts : 1; // that one workgroup adds up
const uint kRowsEach = kExperts != 0 && kSum == 0 ? kExperts : 1; // results of a token
const uint kMatrices = kPair != 0 ? 2 : 1;
const uint kTeamSums = kTokens * kTeamRows; // of one matrix
const uint kTeamValues = kTeamSums * kMatrices;
const uint kGroupRows = kLocal / kLanes * kTeamRows;

#include "common/activation.glsl"
#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"
#include "common/reduce.glsl"

// Results of the workgroup, matrix by matrix, token by token.
shared float products[kMatrices * kTokens * kGroupRows];

uint product_lane() { return local_index() % kLanes; }
uint product_row(uint r) {
  return min(group_index() * kGroupRows + local_index() / kLanes * kTeamRows + r, kRows - 1);
}
uint product_token() { return first_token() + gl_WorkGroupID.z / kRowsEach * kTokens; }
bool product_idle() { return gl_WorkGroupID.z / kRowsEach * kTokens >= token_count(); }
// The row of a token's result, and of its input for choice c.
uint product_out(uint token) { return kRowsEach > 1 ? token * kRowsEach + gl_WorkGroupID.z % kRowsEach : token; }
uint product_input(uint token, uint c) { return kChoices > 1 || kSum != 0 ? token * kExperts + c : token; }

// Routes: the numbers of the chosen experts, then their weights.
uint product_expert(uint c) {
  return au32[push[PUSH_ROUTES] + product_token() * 2 * kExperts + (kSum != 0 ? c : gl_WorkGroupID.z % kRowsEach)];
}
float product_share(uint c) {
  return kSum != 0 ? a32[push[PUSH_ROUTES] + (product_token() * 2 + 1) * kExperts + c] : 1.0;
}
uint product_weight(uint m, uint c) {
  uint start = push[m == 0 ? PUSH_WEIGHT : PUSH_WEIGHT2];
  return kExperts != 0 ? start + product_expert(c) * kExpertUnits : start;
}
float product_bias(uint vector, uint row) {
  if (kExperts == 0)
    return v32[push[vector] + row];
  float sum = 0.0;
  for (uint c = 0; c < kChoices; ++c)
    sum = fma(v32[push[vector] + product_expert(c) * kRows + row], product_share(c), sum);
  return sum;
}

float norm_factor(uint token) {
  float squares = 0.0;
  for (uint i = local_index(); i < kNormIn; i += kLocal)
    squares += a32[push[PUSH_SQUARES_IN] + token * kNormIn + i];
  return 1.0 / sqrt(group_sum(squares) / float(kCols) + kEps);
}

float finished(uint t, uint r, uint row, uint token) {
  float y = products[t * kGroupRows + r];
  if (kBias != 0)
    y += product_bias(PUSH_VECTOR, row);
  if (kPair != 0) {
    float up = products[(kTokens + t) * kGroupRows + r];
    if (kBias != 0)
      up += product_bias(PUSH_VECTOR2, row);
    y = gated(y, up, kActivation, kAlpha, kLimit);
  }
  if (kResidual != 0)
    y += a32[aux_row(token) + place_of(row, kOutOrder)];
  return y;
}

// Called by all invocations of a workgroup when `products` has the sums.
void product_write() {
  barrier();
  uint count = min(kTokens, token_count() - gl_WorkGroupID.z / kRowsEach * kTokens);
  if (kNormIn != 0)
    for (uint t = 0; t < count; ++t) {
      float factor = norm_factor(product_token() + t);
      for (uint r = local_index(); r < kMatrices * kGroupRows; r += kLocal)
        products[(r / kGroupRows * kTokens + t) * kGroupRows + r % kGroupRows] *= factor;
      barrier();
    }
  uint first_row = group_index() * kGroupRows;
  for (uint t = 0; t < count; ++t) {
    uint token = product_token() + t;
    float squares = 0.0;
    for (uint r = local_index(); r < kGroupRows; r += kLocal) {
      uint row = first_row + r;
      if (row >= kRows) {
        products[t * kGroupRows + r] = 0.0;
        continue;
      }
      float y = finished(t, r, row, token);
      if (kNormOut != 0 || kQuantOut == 0)
        a32[out_row(product_out(token)) + place_of(row, kOutOrder)] = y;
      if (kNormOut != 0) {
        squares = fma(y, y, squares);
        y *= v32[push[PUSH_VECTOR2] + row];
        if (kQuantOut == 0)
          a32[third_row(token) + place_of(row, kOrderLanes)] = y;
      }
      products[t * kGroupRows + r] = y;
    }
    if (kNormOut != 0) {
      squares = group_sum(squares);
      uint groups = (kRows + kGroupRows - 1) / kGroupRows;
      if (local_index() == 0 && group_index() < groups)
        a32[push[PUSH_SQUARES_OUT] + token * groups + group_index()] = squares;
    }
  }
  if (kQuantOut == 0)
    return;
  barrier();
  for (uint i = local_index(); i < count * (kGroupRows / 32); i += kLocal) {
    uint t = i / (kGroupRows / 32), g = i % (kGroupRows / 32);
    if (first_row + 32 * g >= kRows)
      continue;
    float values[32];
    for (uint v = 0; v < 32; ++v)
      values[v] = products[t * kGroupRows + 32 * g + v];
    q8_store(kNormOut != 0 ? third_row(product_token() + t) : out_row(product_out(product_token() + t)), kRows, first_row / 32 + g,
             values);
  }
}

// Called by all invocations of a workgroup with their shares of the sums.
void product_finish(vec4 sums[kTeamValues]) {
  float parts[kTeamValues];
  for (uint v = 0; v < kTeamValues; ++v) {
    parts[v] = subgroup_part((sums[v].x + sums[v].z) + (sums[v].y + sums[v].w), kLanes);
    leave_part(parts[v], kLanes, v);
  }
  barrier();
  if (product_lane() == 0)
    for (uint v = 0; v < kTeamValues; ++v) {
      uint t = v % kTeamSums % kTokens, r = local_index() / kLanes * kTeamRows + v % kTeamSums / kTokens;
      products[(v / kTeamSums * kTokens + t) * kGroupRows + r] = team_sum(parts[v], kLanes, v) * kScale;
    }
  product_write();
}

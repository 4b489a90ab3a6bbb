// y = W x for up to kTokens tokens a workgroup, f32 activations in lane order.
//
// A team of kLanes invocations computes kTeamRows rows; lane l takes groups l, l + kLanes, … of 32 weights. A row's sum is
// made in the same order for every kTokens and kTeamRows, so its bits do not depend on what stands beside it.
//
// Workgroups: rows in x (and y), chunks of kTokens tokens in z.

layout(constant_id = SPEC_LANES) const uint kLanes = 32;
layout(constant_id = SPEC_TOKENS) const uint kTokens = 1;
layout(constant_id = SPEC_TEAM_ROWS) const uint kTeamRows = 1;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_BIAS) const uint kBias = 0;     // add v32[push[PUSH_VECTOR] + row]
layout(constant_id = SPEC_RESIDUAL) const uint kResidual = 0; // add the value at the same place of the auxiliary row
layout(constant_id = SPEC_SCALE) const float kScale = 1.0; // the product times this, before bias and residual

const uint kTeamValues = kTokens * kTeamRows;

#include "common/order.glsl"
#include "common/reduce.glsl"

// The last group of rows that are not whole groups: what lies behind the row's end counts nothing.
void cut_tail(uint g, inout vec4 w[8]) {
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      if (32 * g + 4 * j + c >= kCols)
        w[j][c] = 0.0;
}

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  const uint teams = kLocal / kLanes;
  uint lane = local_index() % kLanes;
  uint first_row = (group_index() * teams + local_index() / kLanes) * kTeamRows;
  uint first_chunk_token = gl_WorkGroupID.z * kTokens;
  if (first_chunk_token >= token_count())
    return;
  uint count = min(kTokens, token_count() - first_chunk_token);
  uint token = first_token() + first_chunk_token;
  vec4 sums[kTeamValues];
  for (uint v = 0; v < kTeamValues; ++v)
    sums[v] = vec4(0.0);
  const bool ragged = kCols % 32 != 0;
  for (uint g = lane; g < kGroups; g += kLanes) {
    uint x_at = input_row(token) / 4 + lane_group(g);
    bool cut = ragged && g + 1 == kGroups;
    vec4 w[8];
    vec4 x[8];
    if (kTokens == 1) {
      for (uint j = 0; j < 8; ++j)
        x[j] = a128[x_at + 32 * j];
      if (cut)
        cut_tail(g, x);
    }
    for (uint r = 0; r < kTeamRows; ++r) {
      decode_group(push[PUSH_WEIGHT], min(first_row + r, kRows - 1), g, w);
      if (cut)
        cut_tail(g, w);
      for (uint t = 0; t < kTokens; ++t) {
        if (kTokens > 1) {
          for (uint j = 0; j < 8; ++j)
            x[j] = a128[x_at + t * (push[PUSH_INPUT_STRIDE] / 4) + 32 * j];
          if (cut)
            cut_tail(g, x);
        }
        for (uint j = 0; j < 8; ++j)
          sums[r * kTokens + t] = fma(w[j], x[j], sums[r * kTokens + t]);
      }
    }
  }
  float parts[kTeamValues];
  for (uint v = 0; v < kTeamValues; ++v) {
    parts[v] = subgroup_part((sums[v].x + sums[v].z) + (sums[v].y + sums[v].w), kLanes);
    leave_part(parts[v], kLanes, v);
  }
  barrier();
  if (lane != 0)
    return;
  for (uint r = 0; r < kTeamRows; ++r) {
    uint row = first_row + r;
    if (row >= kRows)
      return;
    uint place = place_of(row, kOutOrder);
    for (uint t = 0; t < count; ++t) {
      float y = team_sum(parts[r * kTokens + t], kLanes, r * kTokens + t) * kScale;
      if (kBias != 0)
        y += v32[push[PUSH_VECTOR] + row];
      if (kResidual != 0)
        y += a32[aux_row(token + t) + place];
      a32[out_row(token + t) + place] = y;
    }
  }
}

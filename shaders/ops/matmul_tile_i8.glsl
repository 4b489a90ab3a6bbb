// y = W x for many tokens, activations in 8 bits: a tile of rows and tokens a workgroup of 256, whose groups of weights are
// decoded once, into shared memory. The bits are those of matmul_i8.glsl with the same kLanes: what a lane would have summed is
// summed in its order, lane by lane, and added to the lanes before it, as reduce.glsl does.
//
// Rows a workgroup (kLocal / kLanes * kTeamRows) and kTokens are multiples of 16.

#include "common/product.glsl"
#include "common/product_i8.glsl"

const uint kStep = 4; // groups of 32 columns at a time
const uint kOwnRows = kGroupRows / 16, kOwnTokens = kTokens / 16; // of a tile, an invocation's
const uint kOwn = kOwnRows * kOwnTokens;

shared uvec4 tile_q[2 * kStep * kGroupRows];
shared vec2 tile_s[kStep * kGroupRows * kScales];
shared uvec4 tile_x[2 * kStep * kTokens];
shared float tile_scale[kStep * kTokens];
shared uint tile_sums[kStep * kTokens];
shared uint tile_rows[kTokens]; // where inputs start

float sums[kOwn], lane_sum[kOwn];

// Groups that a lane sums, and the group and lane of place `at` in the order of lanes.
const uint kLonger = kGroups % kLanes; // lanes with one group more
uint lane_groups(uint lane) { return kGroups / kLanes + (lane < kLonger ? 1 : 0); }
void find_group(uint at, out uint lane, out uint nth) {
  const uint more = kGroups / kLanes + 1, less = max(kGroups / kLanes, 1u);
  if (at < kLonger * more) {
    lane = at / more;
    nth = at % more;
  } else {
    lane = kLonger + (at - kLonger * more) / less;
    nth = (at - kLonger * more) % less;
  }
}

void load_step(uint base, uint first) {
  for (uint i = local_index(); i < kStep * kGroupRows; i += kLocal) {
    uint k = i / kGroupRows, r = i % kGroupRows;
    if (first + k >= kGroups)
      break;
    uint lane, nth;
    find_group(first + k, lane, nth);
    uint q[8];
    vec2 s[kScales];
    uint row = min(group_index() * kGroupRows + r, kRows - 1);
    group_levels(base, row, lane + nth * kLanes, q);
    group_scales(base, row, lane + nth * kLanes, s);
    tile_q[i] = uvec4(q[0], q[1], q[2], q[3]);
    tile_q[kStep * kGroupRows + i] = uvec4(q[4], q[5], q[6], q[7]);
    for (uint c = 0; c < kScales; ++c)
      tile_s[i * kScales + c] = s[c];
  }
  uint padded = q8_padded(kCols);
  for (uint i = local_index(); i < kStep * kTokens; i += kLocal) {
    uint k = i / kTokens, t = i % kTokens;
    if (first + k >= kGroups)
      break;
    uint lane, nth;
    find_group(first + k, lane, nth);
    uint g = lane + nth * kLanes;
    uint row = tile_rows[t];
    tile_x[i] = au128[row / 4 + q8_codes(g, 0)];
    tile_x[kStep * kTokens + i] = au128[row / 4 + q8_codes(g, 1)];
    tile_scale[i] = a32[row + padded * 8 + g];
    tile_sums[i] = au32[row + padded * 9 + g];
  }
}

void add_step(uint k, uint own_row, uint own_token) {
  for (uint a = 0; a < kOwnRows; ++a) {
    uint r = k * kGroupRows + own_row + 16 * a;
    uint q[8];
    vec2 s[kScales];
    set_words(tile_q[r], tile_q[kStep * kGroupRows + r], q);
    for (uint c = 0; c < kScales; ++c)
      s[c] = tile_s[r * kScales + c];
    for (uint b = 0; b < kOwnTokens; ++b) {
      uint t = k * kTokens + own_token + 16 * b;
      uint x[8];
      set_words(tile_x[t], tile_x[kStep * kTokens + t], x);
      uint v = a * kOwnTokens + b;
      lane_sum[v] = add_group(q, s, x, tile_scale[t], tile_sums[t], lane_sum[v]);
    }
  }
}

void end_lane() {
  for (uint v = 0; v < kOwn; ++v) {
    precise float next = sums[v] + lane_sum[v]; // not joined with a product that may be all of the lane
    sums[v] = next;
    lane_sum[v] = 0.0;
  }
}

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (product_idle())
    return;
  for (uint t = local_index(); t < kTokens; t += kLocal)
    tile_rows[t] = input_row(product_input(product_item(min(t, product_count() - 1)), 0));
  uint own_row = local_index() % 16, own_token = local_index() / 16 % 16;
  for (uint m = 0; m < kMatrices; ++m) {
    uint base = product_weight(m, 0);
    for (uint v = 0; v < kOwn; ++v)
      sums[v] = lane_sum[v] = 0.0;
    for (uint first = 0; first < kGroups; first += kStep) {
      barrier();
      load_step(base, first);
      barrier();
      for (uint k = 0; k < kStep && first + k < kGroups; ++k) {
        add_step(k, own_row, own_token);
        uint lane, nth;
        find_group(first + k, lane, nth);
        if (nth + 1 == lane_groups(lane))
          end_lane();
      }
    }
    for (uint a = 0; a < kOwnRows; ++a)
      for (uint b = 0; b < kOwnTokens; ++b)
        products[(m * kTokens + own_token + 16 * b) * kGroupRows + own_row + 16 * a] = sums[a * kOwnTokens + b] * kScale;
  }
  product_write();
}

// Sorts a batch's pairs of token and choice by expert, in tiles of at most kTile pairs of one expert. One workgroup.
// Input: what moe_route left. Out: {number of tiles, words from here to the list of pairs, 0, 0}, then of each tile {expert,
// first place in the list, pairs, 0}, then the list of pairs. Within an expert pairs come in any order: no result depends on it.

layout(constant_id = SPEC_ROUTED) const uint kRouted = 8; // experts there are
layout(constant_id = SPEC_EXPERTS) const uint kExperts = 2; // chosen a token
layout(constant_id = SPEC_TOKENS) const uint kTile = 32;

shared uint counts[kRouted];
shared uint places[kRouted];

uint expert_of(uint pair) { return au32[input_row(pair / kExperts) + pair % kExperts]; }
uint tiles_of(uint count) { return (count + kTile - 1) / kTile; }

void main() {
  uint first = first_token() * kExperts, pairs = token_count() * kExperts;
  for (uint e = local_index(); e < kRouted; e += kLocal)
    counts[e] = 0;
  barrier();
  for (uint p = local_index(); p < pairs; p += kLocal)
    atomicAdd(counts[expert_of(first + p)], 1);
  barrier();
  uint out_at = push[PUSH_OUT];
  uint list = 4 + 4 * (pairs / kTile + min(kRouted, pairs));
  for (uint e = local_index(); e < kRouted; e += kLocal) {
    uint pair = 0, tile = 0;
    for (uint o = 0; o < e; ++o) {
      pair += counts[o];
      tile += tiles_of(counts[o]);
    }
    places[e] = pair;
    for (uint i = 0; i < tiles_of(counts[e]); ++i) {
      au32[out_at + 4 + 4 * (tile + i)] = e;
      au32[out_at + 5 + 4 * (tile + i)] = pair + i * kTile;
      au32[out_at + 6 + 4 * (tile + i)] = min(kTile, counts[e] - i * kTile);
    }
    if (e + 1 == kRouted) {
      au32[out_at] = tile + tiles_of(counts[e]);
      au32[out_at + 1] = list;
    }
  }
  barrier();
  for (uint p = local_index(); p < pairs; p += kLocal)
    au32[out_at + list + atomicAdd(places[expert_of(first + p)], 1)] = first + p;
}

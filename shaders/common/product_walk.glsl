// main() of products whose lanes each walk groups of 32 weights: of one matrix or a pair, for the tokens of a workgroup, or,
// with kSum, of all experts that a token chose, as one row. A lane takes kAhead groups at a time, whose bytes are asked for
// before the first is needed. The file that includes this one says how a group counts, in macros, `g` being its number:
//   WALK_FETCHES                names for what is asked for
//   WALK_FETCH(a, n, base, row), WALK_FETCH_INPUT(a, item)   asks for a row's weights, the n-th of these groups, and for
//                               the activations of the a-th
//   WALK_FETCHED                behind that
//   WALK_GROUP                  names for a group
//   WALK_INPUT(a, item)         the only item's activations
//   WALK_EACH_INPUT(item)       those of one of several items
//   WALK_WEIGHTS(n, base, row)  a row's weights
//   WALK_ADD(sum)               adds their product
//   WALK_ADD_SHARE(sum, share)  adds it times an expert's weight

const uint kWalk = kChoices * kGroups; // groups of a row, or of one of all experts
const uint kRuns = (kWalk + kLanes - 1) / kLanes; // of a lane, at most

// A lane's group number `at`, among those of all experts; the last one where there is none.
uint walk_place(uint at) { return min(product_lane() + at * kLanes, kWalk - 1); }
bool walk_there(uint at) { return kWalk % kLanes == 0 && kRuns % kAhead == 0 || product_lane() + at * kLanes < kWalk; }

void main() {
#if defined(CODEC_SETUP) && !defined(CODEC_FETCH)
  codec_setup();
#endif
  if (product_idle())
    return;
  product_begin();
  vec4 sums[kTeamValues];
  [[unroll]] for (uint v = 0; v < kTeamValues; ++v)
    sums[v] = vec4(0.0);
  for (uint first = 0; first < kRuns; first += kAhead) {
    WALK_FETCHES
    [[unroll]] for (uint a = 0; a < kAhead; ++a) {
      uint c = walk_place(first + a) / kGroups, g = walk_place(first + a) % kGroups;
      if (kTokens == 1) {
        WALK_FETCH_INPUT(a, product_input(product_item(0), c))
      }
      [[unroll]] for (uint m = 0; m < kMatrices; ++m) {
        uint base = product_weight(m, c);
        [[unroll]] for (uint r = 0; r < kTeamRows; ++r) {
          WALK_FETCH(a, (a * kMatrices + m) * kTeamRows + r, base, product_row(r))
        }
      }
    }
#if defined(CODEC_SETUP) && defined(CODEC_FETCH)
    if (first == 0) // while the first of them are on their way
      codec_setup();
#endif
    WALK_FETCHED
    [[unroll]] for (uint a = 0; a < kAhead; ++a) {
      uint c = walk_place(first + a) / kGroups, g = walk_place(first + a) % kGroups;
      bool there = walk_there(first + a);
      float share = product_share(c);
      WALK_GROUP
      WALK_INPUT(a, product_input(product_item(0), c))
      [[unroll]] for (uint m = 0; m < kMatrices; ++m)
        [[unroll]] for (uint r = 0; r < kTeamRows; ++r) {
          WALK_WEIGHTS((a * kMatrices + m) * kTeamRows + r, product_weight(m, c), product_row(r))
          [[unroll]] for (uint t = 0; t < kTokens; ++t) {
            uint v = (m * kTeamRows + r) * kTokens + t;
            WALK_EACH_INPUT(product_input(product_item(t), 0))
            if (there) {
              if (kSum != 0) {
                WALK_ADD_SHARE(sums[v], share)
              } else {
                WALK_ADD(sums[v])
              }
            }
          }
        }
    }
  }
  product_finish(sums);
}

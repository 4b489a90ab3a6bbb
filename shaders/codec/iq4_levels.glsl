// The levels of iq4_nl and iq4_xs: -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113. Two codes are looked up
// at a time, in shared memory, of which neighbours have copies of their own, since a bank answers one of them at a time.

#include "codec/levels16.glsl"

#define CODEC_SETUP

const uint kLevelCopies = 8;
shared uint level_pairs[256 * kLevelCopies]; // of codes i % 16 and i / 16: levels in bytes 0 and 2

void codec_setup() {
  for (uint i = gl_LocalInvocationIndex; i < 256; i += kLocal) {
    uint both = look_up(i & 15 | i >> 4 << 16, 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u) & 0x00ff00ffu;
    [[unroll]] for (uint c = 0; c < kLevelCopies; ++c)
      level_pairs[i * kLevelCopies + c] = both;
  }
  barrier();
}

uint level_pair(uint codes) { return level_pairs[(codes & 255) * kLevelCopies + gl_LocalInvocationIndex % kLevelCopies]; }

// Of 16 bytes of nibbles, as halves() takes them.
void iq4_levels(uvec4 n, out uint q[8]) {
  [[unroll]] for (uint u = 0; u < 4; ++u) {
    uint a = level_pair(n[u]) | level_pair(n[u] >> 8) << 8, b = level_pair(n[u] >> 16) | level_pair(n[u] >> 24) << 8;
    q[u] = (a & 0xffffu) | b << 16;
    q[4 + u] = a >> 16 | (b & 0xffff0000u);
  }
}

// The levels of iq4_nl and iq4_xs: -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113. Two codes are looked up
// at a time, in shared memory, of which neighbours have copies of their own, since a bank answers one of them at a time: as many
// as a large workgroup makes in little time.

#include "codec/levels16.glsl"

#define CODEC_SETUP

const uint kLevelCopies = kLocal >= 1024 ? 32 : kLocal >= 512 ? 16 : 8;
shared uint level_pairs[256 * kLevelCopies]; // of codes i % 16 and i / 16: levels in bytes 0 and 2

// Invocations side by side write to banks side by side.
void codec_setup() {
  const uint each = kLevelCopies / 8;
  for (uint n = gl_LocalInvocationIndex; n < 256 * each; n += kLocal) {
    uint i = n / each;
    uint both = look_up(i & 15 | i >> 4 << 16, 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u) & 0x00ff00ffu;
    [[unroll]] for (uint c = 0; c < 8; ++c)
      level_pairs[i * kLevelCopies + (c + i) % 8 * each + n % each] = both;
  }
  barrier();
}

uint level_pair(uint codes) { return level_pairs[(codes & 255) * kLevelCopies + gl_LocalInvocationIndex % kLevelCopies]; }

// Levels of the eight codes of a word: those of the low nibbles of two bytes, then of the high ones.
void code_pairs(uint n, out uint near, out uint far) {
  near = level_pair(n) + (level_pair(n >> 8) << 8);
  far = level_pair(n >> 16) + (level_pair(n >> 24) << 8);
}
#define CODEC_PAIRS

// Of 16 bytes of nibbles, as halves() takes them.
void iq4_levels(uvec4 n, out uint q[8]) {
  [[unroll]] for (uint u = 0; u < 4; ++u) {
    uint a, b;
    code_pairs(n[u], a, b);
    q[u] = (a & 0xffffu) | b << 16;
    q[4 + u] = a >> 16 | (b & 0xffff0000u);
  }
}

#include "formats/layout/plane_order.h"

#include <cstring>

namespace cortiq::formats {
namespace {

constexpr int kGroups = 8, kGroup = 32;

// A group's nibbles among bytes that two groups share, at `shift`; and by themselves, halves.
void take_nibbles(const uint8_t* shared, int shift, uint8_t* own) {
  for (int i = 0; i < kGroup / 2; ++i)
    own[i] = static_cast<uint8_t>((shared[i] >> shift & 15) | (shared[kGroup / 2 + i] >> shift & 15) << 4);
}
void give_nibbles(const uint8_t* own, int shift, uint8_t* shared) {
  for (int i = 0; i < kGroup / 2; ++i) {
    shared[i] |= static_cast<uint8_t>((own[i] & 15) << shift);
    shared[kGroup / 2 + i] |= static_cast<uint8_t>(own[i] >> 4 << shift);
  }
}

// ---- q4_k: record d 2, dmin 2, scales 12, qs 128 ----

constexpr LayoutField kQ4KFields[] = {{"d", 0, 4, 1}, {"sc", 4, 4, 2}, {"m", 12, 4, 1}, {"qs", 16, 4, 32}};

// Scales and minimums of six bits: those of the first four groups are the low bits of bytes 0 to 3 and 4 to 7, of the
// others four bits are in bytes 8 to 11 and two in the top of what the first four have.
void six_bits(const uint8_t* scales, int group, int& scale, int& minimum) {
  const int k = group % 4;
  scale = group < 4 ? scales[k] & 63 : (scales[8 + k] & 15) | scales[k] >> 6 << 4;
  minimum = group < 4 ? scales[4 + k] & 63 : scales[8 + k] >> 4 | scales[4 + k] >> 6 << 4;
}

void q4_k_to_planes(const uint8_t* record, uint8_t* ordered) {
  std::memcpy(ordered, record, 4);
  std::memset(ordered + 12, 0, 4);
  for (int g = 0; g < kGroups; ++g) {
    int scale, minimum;
    six_bits(record + 4, g, scale, minimum);
    ordered[4 + g] = static_cast<uint8_t>(scale | minimum << 6);
    ordered[12 + g / 2] |= static_cast<uint8_t>(minimum >> 2 << g % 2 * 4);
    // A pair of groups has 32 bytes, the first one's weights in the low nibbles.
    take_nibbles(record + 16 + g / 2 * kGroup, g % 2 * 4, ordered + 16 + g * kGroup / 2);
  }
}

void q4_k_from_planes(const uint8_t* ordered, uint8_t* record) {
  std::memcpy(record, ordered, 4);
  std::memset(record + 4, 0, 12 + kGroups * kGroup / 2);
  for (int g = 0; g < kGroups; ++g) {
    const int scale = ordered[4 + g] & 63, k = g % 4;
    const int minimum = ordered[4 + g] >> 6 | (ordered[12 + g / 2] >> g % 2 * 4 & 15) << 2;
    uint8_t* scales = record + 4;
    if (g < 4) {
      scales[k] |= static_cast<uint8_t>(scale);
      scales[4 + k] |= static_cast<uint8_t>(minimum);
    } else {
      scales[8 + k] = static_cast<uint8_t>((scale & 15) | minimum << 4);
      scales[k] |= static_cast<uint8_t>(scale >> 4 << 6);
      scales[4 + k] |= static_cast<uint8_t>(minimum >> 4 << 6);
    }
    give_nibbles(ordered + 16 + g * kGroup / 2, g % 2 * 4, record + 16 + g / 2 * kGroup);
  }
}

// ---- q6_k: record d 2, scales 16, ql 128, qh 64 ----

constexpr LayoutField kQ6KFields[] = {{"d", 0, 2, 1}, {"scales", 2, 4, 4}, {"ql", 18, 4, 32}, {"qh", 146, 4, 16}};

constexpr int kLow = 18, kHigh = 146;

// Two groups share 32 bytes of low bits, four share 32 bytes of upper ones.
int q6_low(int g) {
  return kLow + g / 4 * 2 * kGroup + g % 2 * kGroup;
}
int q6_high(int g) {
  return kHigh + g / 4 * kGroup;
}

void q6_k_to_planes(const uint8_t* record, uint8_t* ordered) {
  std::memcpy(ordered, record, kLow);
  for (int g = 0; g < kGroups; ++g) {
    take_nibbles(record + q6_low(g), g % 4 / 2 * 4, ordered + kLow + g * kGroup / 2);
    const uint8_t* high = record + q6_high(g);
    for (int k = 0; k < kGroup / 4; ++k) {
      int bits = 0;
      for (int s = 0; s < 4; ++s)
        bits |= (high[k / 4 * 16 + 4 * s + k % 4] >> 2 * (g % 4) & 3) << 2 * s;
      ordered[kHigh + g * kGroup / 4 + k] = static_cast<uint8_t>(bits);
    }
  }
}

void q6_k_from_planes(const uint8_t* ordered, uint8_t* record) {
  std::memcpy(record, ordered, kLow);
  std::memset(record + kLow, 0, kGroups * kGroup * 6 / 8);
  for (int g = 0; g < kGroups; ++g) {
    give_nibbles(ordered + kLow + g * kGroup / 2, g % 4 / 2 * 4, record + q6_low(g));
    uint8_t* high = record + q6_high(g);
    for (int k = 0; k < kGroup / 4; ++k)
      for (int s = 0; s < 4; ++s)
        high[k / 4 * 16 + 4 * s + k % 4] |=
            static_cast<uint8_t>((ordered[kHigh + g * kGroup / 4 + k] >> 2 * s & 3) << 2 * (g % 4));
  }
}

} // namespace

constinit const PlaneOrder kQ4KPlaneOrder = {kQ4KFields, q4_k_to_planes, q4_k_from_planes};
constinit const PlaneOrder kQ6KPlaneOrder = {kQ6KFields, q6_k_to_planes, q6_k_from_planes};

} // namespace cortiq::formats

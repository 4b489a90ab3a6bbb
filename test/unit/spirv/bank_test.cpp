// The expert bank: one layer step on the device against the host, with tensors that differ in every slot.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "formats/artifact/shader_abi.h"
#include "formats/layout/layout.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"

namespace cortiq::codegen {
namespace {

using namespace formats; // codecs, and the numbers of shader_abi.h

constexpr uint32_t kChosen = 3, kWinners = 4, kCount = 2;
constexpr uint32_t kNone = 0xffffffffu;

struct Geometry {
  uint32_t hidden, inner, slots;
  float limit;
  double error; ///< normalised, at most
};
constexpr Geometry kSmall{128, 64, 6, 0.5f, 0.02}, kSixteen{128, 64, 16, 0.5f, 0.02},
    kRelease{5120, 2304, 16, 10.0f, 0.01};

float rounded(float x, bool half) {
  uint32_t b = std::bit_cast<uint32_t>(x);
  b = (b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u;
  return half ? std::bit_cast<float>(b) : x;
}

struct Bank {
  const Codec* codec;
  uint32_t rows, cols;
  std::vector<std::vector<uint8_t>> slots;

  Bank(const char* name, uint32_t count, uint32_t r, uint32_t c, uint32_t seed)
      : codec(find_codec(name)), rows(r), cols(c) {
    for (uint32_t s = 0; s < count; ++s) {
      slots.emplace_back(*packed_bytes(*codec, LayoutId::kVerbatim, rows, cols));
      EXPECT_TRUE(fill_random(*codec, LayoutId::kVerbatim, rows, cols, seed + s, slots[s]).ok());
      slots[s].resize((slots[s].size() + 3) / 4 * 4);
    }
  }
  uint32_t words() const { return static_cast<uint32_t>(slots[0].size() / 4); }
  /// Into segments whose slots have `parts` matrices, as number `part` of each.
  void put(Dispatch& d, uint32_t segment_slots, uint32_t parts = 1, uint32_t part = 0) const {
    for (uint32_t s = 0; s < slots.size(); ++s) {
      Words& segment = d.buffers[kFirstSegment + s / segment_slots];
      segment.resize(std::max<size_t>(segment.size(), (s % segment_slots + 1) * parts * words()));
      std::memcpy(segment.data() + (s % segment_slots * parts + part) * words(), slots[s].data(), slots[s].size());
    }
  }
  std::vector<double> times(uint32_t slot, const std::vector<double>& x) const {
    std::vector<double> y(rows);
    std::vector<float> w(cols);
    for (uint32_t r = 0; r < rows; ++r) {
      codec->decode_row(slots[slot].data(), rows, cols, r, w.data());
      for (uint32_t i = 0; i < cols; ++i)
        y[r] += w[i] * x[i];
    }
    return y;
  }
};

class BankTest : public ShaderTest {
protected:
  /// Normalised error below what the geometry says, cosine above 0.999. Two slots a segment, or with `sixteen` one.
  void check(const Geometry& geometry, const char* outer, const char* inner, bool preweighted, bool sixteen = false) {
    SCOPED_TRACE(std::string(outer) + (preweighted ? " preweighted" : "") + (sixteen ? " sixteen segments" : ""));
    const uint32_t segment_slots = sixteen ? 1 : 2;
    const char* suffix = sixteen ? "_s16" : "";
    const uint32_t hidden = geometry.hidden, width = geometry.inner;
    const float limit = geometry.limit;
    const Bank gate(outer, geometry.slots, width, hidden, 10), up(outer, geometry.slots, width, hidden, 20),
        down(inner, geometry.slots, hidden, width, 30);
    const std::vector<uint32_t> experts = {5, 0, 7, 2, 5, 1};
    const std::vector<float> shares = {0.5f, 0.3f, 0.2f, 0.6f, 0.3f, 0.1f};
    // Of eight experts, over all segments.
    const uint32_t far = (geometry.slots - 1) / 5;
    const std::vector<uint32_t> remap = {3 * far, far, kNone, 0, 4 * far, 2 * far, 0, kNone};
    const uint32_t shared_slot = 5 * far;
    constexpr uint32_t kStride = 2 * kChosen;
    constexpr float kSharedWeight = 0.7f;
    std::vector<std::vector<float>> xs;
    Dispatch d;
    Words& arena = d.buffers[kArena];
    for (uint32_t t = 0; t < kCount; ++t) {
      xs.push_back(random_floats(hidden, t + 1));
      append(arena, xs[t]);
    }
    const uint32_t routes_at = static_cast<uint32_t>(arena.size());
    for (uint32_t t = 0; t < kCount; ++t) {
      arena.insert(arena.end(), experts.begin() + t * kChosen, experts.begin() + (t + 1) * kChosen);
      append(arena, {shares.begin() + t * kChosen, shares.begin() + (t + 1) * kChosen});
    }
    const uint32_t winners_at = static_cast<uint32_t>(arena.size()), act_at = winners_at + kCount * 3 * kWinners,
                   out_at = act_at + kCount * kWinners * width;
    arena.resize(out_at + kCount * hidden);
    d.buffers[kVectors] = remap;
    d.buffers[kStep] = {kCount, 0, 0, 0};
    d.buffers[kResults].assign(4 + kCount * (1 + 2 * kChosen), 0);
    d.push = {0, routes_at, winners_at, 0, 0, kStride, 3 * kWinners, 0, 4};
    d.grid = {1, 1, kCount};
    run("bank_remap",
        {{kSpecLocal, 32},
         {kSpecExperts, kChosen},
         {kSpecBankWinners, kWinners},
         {kSpecBankSharedSlot, shared_slot},
         {kSpecScale, std::bit_cast<uint32_t>(kSharedWeight)}},
        d);
    gate.put(d, segment_slots, 2, 0);
    up.put(d, segment_slots, 2, 1);
    std::vector<std::pair<uint32_t, uint32_t>> shape = {{kSpecLocal, 32},
                                                        {kSpecBankInner, width},
                                                        {kSpecBankHidden, hidden},
                                                        {kSpecBankWinners, kWinners},
                                                        {kSpecBankPreweighted, preweighted}};
    auto first = shape, second = shape;
    first.insert(first.end(), {{kSpecBankSlotWords, gate.words()}, {kSpecBankLimit, std::bit_cast<uint32_t>(limit)}});
    second.push_back({kSpecBankDownSlotWords, down.words()});
    d.push = {segment_slots, 0, act_at, 0, 0, hidden, width, 0, 0, 0, 0, winners_at};
    d.grid = {width, kWinners, kCount};
    run(std::string("bank_gate_up_") + outer + suffix, first, d);
    for (uint32_t s = 0; s < kSegments; ++s)
      d.buffers.erase(kFirstSegment + s);
    down.put(d, segment_slots);
    d.push = {segment_slots, act_at, out_at, 0, 0, width, hidden, 0, 0, 0, 0, winners_at};
    d.grid = {hidden, 1, kCount};
    run(std::string("bank_down_") + inner + suffix, second, d);
    if (HasFatalFailure())
      return;
    double worst = 0;
    for (uint32_t t = 0; t < kCount; ++t) {
      std::vector<double> want(hidden);
      std::vector<uint32_t> cold = {0};
      for (uint32_t k = 0; k < kWinners; ++k) {
        const uint32_t slot = k < kChosen ? remap[experts[t * kChosen + k]] : shared_slot;
        const float weight = k < kChosen ? shares[t * kChosen + k] : kSharedWeight;
        if (slot == kNone) {
          ++cold[0];
          cold.insert(cold.end(), {experts[t * kChosen + k], std::bit_cast<uint32_t>(weight)});
          continue;
        }
        const std::vector<double> x(xs[t].begin(), xs[t].end());
        std::vector<double> g = gate.times(slot, x), u = up.times(slot, x);
        for (uint32_t i = 0; i < width; ++i) {
          const float a = std::min(rounded(static_cast<float>(g[i]), preweighted), limit);
          const float b = std::clamp(rounded(static_cast<float>(u[i]), preweighted), -limit, limit);
          g[i] = rounded(static_cast<float>((preweighted ? weight : 1) * a / (1 + std::exp(-a)) * b), preweighted);
        }
        const std::vector<double> y = down.times(slot, g);
        for (uint32_t i = 0; i < hidden; ++i)
          want[i] += (preweighted ? 1 : weight) * y[i];
      }
      for (uint32_t i = 0; i < cold.size(); ++i)
        EXPECT_EQ(d.buffers[kResults][4 + t * (1 + 2 * kChosen) + i], cold[i]) << t << " " << i;
      double error = 0, norm = 0, dot = 0, own = 0;
      for (uint32_t i = 0; i < hidden; ++i) {
        const double expected = rounded(static_cast<float>(want[i]), preweighted);
        const double got = std::bit_cast<float>(d.buffers[kArena][out_at + t * hidden + i]);
        error += (got - expected) * (got - expected);
        norm += expected * expected;
        own += got * got;
        dot += got * expected;
      }
      EXPECT_GT(norm, 0);
      EXPECT_LT(std::sqrt(error / norm), geometry.error);
      worst = std::max(worst, std::sqrt(error / norm));
      EXPECT_GT(dot / std::sqrt(norm * own), 0.999);
    }
    char figure[16];
    std::snprintf(figure, sizeof(figure), "%.1e", worst);
    RecordProperty(std::string(outer) + (preweighted ? "_preweighted_" : "_") + std::to_string(hidden), figure);
  }
};

TEST_F(BankTest, EveryCodecInBothModes) {
  for (const bool preweighted : {false, true}) {
    check(kSmall, "mxfp4", "mxfp4", preweighted);
    check(kSmall, "q4tp", "q4tp", preweighted);
    check(kSmall, "q2tp", "q4tp", preweighted);
    check(kSmall, "mxfp4_ggml", "mxfp4_ggml", preweighted);
  }
}

TEST_F(BankTest, SixteenSegmentsOfEveryCodec) {
  check(kSixteen, "mxfp4", "mxfp4", false, true);
  check(kSixteen, "q4tp", "q4tp", true, true);
  check(kSixteen, "q2tp", "q4tp", false, true);
}

// Sixteen slots of 6 MB.
TEST_F(BankTest, ReleaseGeometry) {
  check(kRelease, "mxfp4", "mxfp4", true);
  check(kRelease, "mxfp4", "mxfp4", false);
  check(kRelease, "q4tp", "q4tp", true);
  check(kRelease, "q2tp", "q4tp", true);
}

} // namespace
} // namespace cortiq::codegen

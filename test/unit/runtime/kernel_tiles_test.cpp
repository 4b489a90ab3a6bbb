#include "runtime/ops/kernel_tiles.h"

#include <gtest/gtest.h>

#include "formats/layout/layout.h"

namespace cortiq::runtime {
namespace {

struct Seen {
  bool varying;
  formats::KernelArgs args;
};
std::vector<Seen>& seen() {
  static std::vector<Seen> calls;
  return calls;
}
void take_eight(const formats::KernelArgs* args) {
  seen().push_back({false, *args});
}
void take_one(const formats::KernelArgs* args) {
  seen().push_back({false, *args});
}
void take_any(const formats::KernelArgs* args) {
  seen().push_back({true, *args});
}

constexpr uint64_t kGroupBytes = 1000;
const TileSet kTiles = {{{1, take_one}, {8, take_eight}, {256, take_any, 96, kGroupBytes}}};

/// A run over 300 tokens and ten row groups: every row of every token is computed once, from its own place.
TEST(KernelTilesTest, AVaryingKernelTakesItsRowGroupsInParts) {
  std::vector<float> out(300 * 200), residual(out.size()), bias(160);
  std::vector<uint8_t> weights(10 * kGroupBytes), act(300 * 64);
  formats::KernelArgs args{};
  args.weights = weights.data();
  args.act = act.data();
  args.out = out.data();
  args.residual = residual.data();
  args.bias = bias.data();
  args.groups = 10;
  args.act_stride = 64;
  args.out_stride = args.residual_stride = 200 * sizeof(float);
  seen().clear();
  run_tiles(kTiles, args, {300});
  std::vector<int> computed(300 * 10);
  for (const auto& [varying, call] : seen()) {
    const auto token = uint64_t(call.act - act.data()) / 64,
               group = uint64_t(call.weights - weights.data()) / kGroupBytes;
    EXPECT_LE(call.groups, varying ? formats::kTileKernelGroups : 10);
    EXPECT_EQ(call.out, out.data() + token * 200 + group * formats::kRowGroup);
    EXPECT_EQ(call.residual, residual.data() + token * 200 + group * formats::kRowGroup);
    EXPECT_EQ(call.bias, bias.data() + group * formats::kRowGroup);
    const uint64_t tokens = varying ? call.tokens : std::min<uint64_t>(call.tokens, 8);
    for (uint64_t t = 0; t < tokens; ++t)
      for (uint64_t g = 0; g < call.groups; ++g)
        ++computed.at((token + t) * 10 + group + g);
  }
  EXPECT_EQ(computed, std::vector<int>(300 * 10, 1));
}

TEST(KernelTilesTest, FewTokensOfALargeBatchTakeTheVaryingKernel) {
  std::vector<float> out(2 * formats::kRowGroup);
  std::vector<uint8_t> weights(2 * kGroupBytes), act(1);
  formats::KernelArgs args{};
  args.weights = weights.data();
  args.act = act.data();
  args.out = out.data();
  args.groups = 2;
  seen().clear();
  run_tiles(kTiles, args, {64, 0, 256});
  ASSERT_EQ(seen().size(), 1);
  EXPECT_TRUE(seen()[0].varying);
  EXPECT_EQ(seen()[0].args.tokens, 64);
  args.out = out.data();
  seen().clear();
  run_tiles(kTiles, args, {64, 0, 64});
  EXPECT_FALSE(seen()[0].varying);
}

TEST(KernelTilesTest, APromptsTokensHaveAKernelOfTheirOwn) {
  constexpr uint64_t kRecord = 64;
  TileSet set = kTiles;
  set.half = Tile{16, take_any, 1, kGroupBytes, true, true, 8, kRecord};
  std::vector<float> out(60 * formats::kRowGroup);
  std::vector<uint8_t> weights(kGroupBytes), act(60 * 2 * kRecord);
  struct Want {
    bool varying;
    uint64_t token, tokens;
    bool operator==(const Want&) const = default;
  };
  const auto calls = [&](const TokenRun& run, uint64_t stride) {
    formats::KernelArgs args{};
    args.weights = weights.data();
    args.act = act.data();
    args.out = out.data();
    args.groups = 1;
    args.act_stride = stride;
    args.out_stride = formats::kRowGroup * sizeof(float);
    seen().clear();
    run_tiles(set, args, run);
    std::vector<Want> got;
    for (const auto& [varying, call] : seen()) {
      EXPECT_EQ(uint64_t(call.out - out.data()) / formats::kRowGroup, uint64_t(call.act - act.data()) / stride);
      got.push_back({varying, uint64_t(call.act - act.data()) / stride, call.tokens});
    }
    return got;
  };
  EXPECT_EQ(calls({1, 1}, kRecord), (std::vector<Want>{{true, 0, 1}}));
  EXPECT_EQ(calls({20, 18}, kRecord),
            (std::vector<Want>{{true, 0, 16}, {true, 16, 2}, {false, 18, 1}, {false, 19, 1}}));
  EXPECT_EQ(calls({9, 0}, kRecord), (std::vector<Want>{{false, 0, 8}, {false, 8, 1}}));
  // Not side by side: one after the other, for the kernel knows one distance.
  EXPECT_EQ(calls({3, 2}, 2 * kRecord), (std::vector<Want>{{true, 0, 1}, {true, 1, 1}, {false, 2, 1}}));
}

TEST(KernelTilesTest, FewTokensLeaveTheVaryingKernelAlone) {
  EXPECT_FALSE(on_tile_registers(kTiles.tiles, 95));
  EXPECT_TRUE(on_tile_registers(kTiles.tiles, 96));
  EXPECT_FALSE(on_tile_registers({kTiles.tiles.begin(), kTiles.tiles.begin() + 2}, 96));
  EXPECT_EQ(tokens_a_pass(kTiles.tiles, 0), 0);
  EXPECT_EQ(tokens_a_pass(kTiles.tiles, 5), 1);
  EXPECT_EQ(tokens_a_pass(kTiles.tiles, 20), 8);
  EXPECT_EQ(tokens_a_pass(kTiles.tiles, 100), 100);
  EXPECT_EQ(tokens_a_pass(kTiles.tiles, 600), 256);
}

} // namespace
} // namespace cortiq::runtime

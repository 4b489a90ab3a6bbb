// The costs of paths on 64-bit Arm without products of matrices, for the `fast` arm: no board was measured, so what
// llvm-mca 19 estimates for the loops (cortiq-bench --static, 2,048 columns, data in the first cache) stands here. A
// token by the tile of four, a token of 256, and for decoding the kernel of one token, which does as much and more.
// Cycles are counted as of a Cortex-A72 of 1.8 GHz and an A76 of 2.4 GHz; choices depend on their ratios alone.

#include "codegen/kernels/path_cost.h"

#include <algorithm>
#include <iterator>

namespace cortiq::codegen {
namespace {

constexpr std::string_view kTargets[] = {"armv8", "dotprod"};

struct Row {
  std::string_view codec;
  PathCost fast[2]; ///< by target
};

// clang-format off
constexpr Row kRows[] = {
    {"q8_row", {{109.8, 109.3, 104}, {25.1, 24.8, 33}}},
    {"q8_2f", {{109.8, 109.3, 104}, {25.1, 24.8, 33}}},
    {"q4_block", {{99.5, 100.2, 113}, {30.4, 27, 42}}},
    {"q4_tiled", {{99.5, 100.2, 113}, {30.4, 27, 42}}},
    {"q4tp", {{114.3, 96.1, 122}, {34, 27, 63}}},
    {"q1", {{108.7, 95.2, 127}, {32.8, 26.7, 53}}},
    {"q2tp", {{106.3, 115.4, 139}, {37.1, 27.5, 71}}},
    {"q2tp_affine", {{103.4, 95.3, 125}, {33.9, 26.8, 62}}},
    {"q1g", {{110.9, 95.2, 122}, {32.8, 26.7, 49}}},
    {"mxfp4", {{118.5, 103.4, 176}, {41.2, 26, 91}}},
    {"q4_0", {{99.5, 100.2, 113}, {30.4, 27, 42}}},
    {"q4_1", {{106.4, 118.5, 122}, {33.3, 29.8, 49}}},
    {"q5_0", {{110.9, 100.2, 162}, {43.4, 27, 79}}},
    {"q5_1", {{115.6, 118.5, 172}, {46.5, 29.7, 86}}},
    {"q8_0", {{114.7, 103.4, 100}, {26.9, 26.1, 41}}},
    {"q4_k", {{125.4, 118.5, 136}, {37.2, 29.8, 68}}},
    {"q5_k", {{126.6, 118.4, 193}, {49.4, 29.8, 117}}},
    {"q6_k", {{132.2, 114.2, 197}, {57.7, 40, 119}}},
    {"iq4_nl", {{115.5, 103.4, 163}, {39.3, 26, 83}}},
    {"q2_k", {{146.2, 138, 181}, {61.9, 49.3, 95}}},
    {"q3_k", {{139.9, 114.3, 222}, {63.7, 40.1, 124}}},
    {"q8_k", {{96.2, 103.4, 92}, {25.6, 26.1, 35}}},
    {"iq4_xs", {{116.3, 103.4, 177}, {42.2, 26.1, 93}}},
    {"iq2_xxs", {{198, 103.5, 547}, {117.4, 26.2, 380}}},
    {"iq2_xs", {{218.8, 110.7, 569}, {133.8, 38.2, 395}}},
    {"iq2_s", {{215.9, 110.7, 560}, {131.5, 38.2, 389}}},
    {"iq3_xxs", {{198.5, 103.5, 549}, {118.1, 26.2, 381}}},
    {"iq3_s", {{198.9, 103.5, 549}, {119.5, 26.2, 382}}},
    {"iq1_s", {{166, 103.4, 428}, {94.8, 26.2, 293}}},
    {"iq1_m", {{199.5, 110.5, 487}, {111.9, 38.1, 336}}},
    {"tq1_0", {{165.4, 95.2, 358}, {76.5, 26.8, 219}}},
    {"tq2_0", {{115.5, 95.2, 115}, {31.6, 26.8, 43}}},
    {"mxfp4_ggml", {{118.8, 103.4, 178}, {41.9, 26, 91}}},
    {"nvfp4", {{137, 110.5, 225}, {58.2, 38, 126}}},
    {"q1_0", {{110.9, 95.2, 122}, {32.8, 26.7, 49}}},
    {"q2_0", {{110.5, 95.2, 118}, {31.6, 26.7, 45}}},
    {"q2_0_g128", {{113.8, 95.2, 116}, {31.6, 26.7, 44}}},
    {"stq1_0", {{146.5, 95.3, 283}, {73, 26.8, 181}}},
    {"g8_0", {{147.9, 133.1, 178}, {70.9, 62.5, 91}}},
    {"ptq1_0", {{170.3, 95.2, 376}, {80.4, 26.8, 234}}},
    {"fv5b", {{96.2, 103.4, 92}, {25.6, 26.1, 35}}},
    {"i2_s", {{96.7, 98.7, 109}, {26, 25.2, 40}}},
    {"i8_s", {{109.8, 109.3, 104}, {25.1, 24.8, 33}}},
};
// clang-format on

} // namespace

const PathCost* estimated_path_cost(const KernelSpec& spec) {
  const size_t target = static_cast<size_t>(std::ranges::find(kTargets, spec.isa) - std::begin(kTargets));
  if (target == std::size(kTargets) || spec.arm != Arm::kFast)
    return nullptr;
  const std::string_view codec = formats::codec_info(spec.codec).name;
  const auto row = std::ranges::find(kRows, codec, &Row::codec);
  return row != std::end(kRows) && row->fast[target].fused > 0 ? &row->fast[target] : nullptr;
}

} // namespace cortiq::codegen

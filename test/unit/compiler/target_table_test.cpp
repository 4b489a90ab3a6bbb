#include "compiler/target/target_table.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/aarch64/features.h"
#include "codegen/x86/features.h"
#include "formats/artifact/target_needs.h"

namespace cortiq::compiler {
namespace {

using testing::HasSubstr;

std::vector<std::string> strings(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

TEST(TargetTable, EveryTargetIsOneThatCodeIsGeneratedFor) {
  ASSERT_FALSE(targetTable().empty());
  for (const Target& target : targetTable()) {
    SCOPED_TRACE(target.name);
    // The loader holds artifacts against the same words.
    const formats::TargetNeeds* needs = formats::find_target_needs(target.name);
    ASSERT_NE(needs, nullptr);
    EXPECT_TRUE(std::ranges::equal(needs->features, target.features));
    // What the generators may use is what the artifact demands of its machine.
    std::vector<std::string> wanted = codegen::aarch64_target_features(target.name);
    if (!wanted.empty()) {
      EXPECT_EQ(target.vectorBytes, 16);
    } else {
      auto features = codegen::x86_target(target.name);
      ASSERT_TRUE(features.ok()) << features.status().message();
      EXPECT_EQ(uint64_t(target.vectorBytes) * 8, features->max_vector_bits());
      wanted = codegen::x86_target_features(target.name);
    }
    for (const std::string& feature : wanted)
      EXPECT_TRUE(std::ranges::count(strings(target.features), feature)) << feature;
    ASSERT_FALSE(target.tokenTiles.empty());
    EXPECT_EQ(target.tokenTiles.front(), 1);
    EXPECT_TRUE(std::ranges::is_sorted(target.tokenTiles));
    EXPECT_GT(target.l1Bytes, 0);
    EXPECT_GT(target.l2Bytes, target.l1Bytes);
  }
}

TEST(TargetTable, FindsByNameAndListsNamesOtherwise) {
  ASSERT_TRUE(findTarget("x86-64-v3").ok());
  auto unknown = findTarget("z80");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.status().message(), HasSubstr("no target 'z80'"));
  EXPECT_THAT(unknown.status().message(), HasSubstr("x86-64-v3"));
}

TEST(TargetTable, NativeIsTheLastThatTheHostCanRun) {
  for (const Target& target : targetTable()) {
    Host host{.features = strings(target.features), .l1Bytes = 48 << 10, .l2Bytes = 2 << 20, .cores = 3};
    auto native = nativeTarget(host);
    ASSERT_TRUE(native.ok());
    // A later target may need nothing more; it then stands for this one.
    for (std::string_view feature : native->features)
      EXPECT_TRUE(std::ranges::count(host.features, feature)) << feature;
    EXPECT_EQ(native->l1Bytes, 48 << 10);
    EXPECT_EQ(native->l2Bytes, 2 << 20);
    EXPECT_EQ(native->cores, 3);
  }
}

/// The names that a list stands for on the best x86 machine, or the refusal.
std::string listed(std::string_view words) {
  const auto targets = findTargets(words, Host{.features = strings(findTarget("amx")->features)});
  if (!targets.ok())
    return targets.status().message();
  std::string out;
  for (const Target& target : *targets)
    out += (out.empty() ? "" : " ") + std::string(target.name);
  return out;
}

TEST(TargetTable, ListsAreSortedAndWithoutRepetition) {
  const std::string best = "amx";
  EXPECT_EQ(listed("native"), best);
  EXPECT_EQ(listed("avx512vnni,x86-64-v3,avxvnni"), "x86-64-v3 avxvnni avx512vnni");
  EXPECT_EQ(listed("native,x86-64-v3"), "x86-64-v3 " + best);
  EXPECT_EQ(listed("i8mm,armv8"), "armv8 i8mm");
  EXPECT_THAT(listed("native,armv8"), HasSubstr("which are different machines"));
  EXPECT_THAT(listed("avxvnni,x86-64-v3,avxvnni"), HasSubstr("names 'avxvnni' twice;"));
  EXPECT_THAT(listed("native," + best), HasSubstr("for native is it here"));
  EXPECT_THAT(listed("x86-64-v3,,avxvnni"), HasSubstr("no target ''"));
  EXPECT_THAT(listed("x86-64-v3,"), HasSubstr("no target ''"));
  EXPECT_THAT(listed(""), HasSubstr("no target ''"));
}

TEST(TargetTable, PromptsAreInSixteenBitsWhereTheHostHasTheTiles) {
  Target amx = *findTarget("amx");
  EXPECT_TRUE(amx.halfPrompts);
  Host host{.features = strings(amx.features)};
  EXPECT_TRUE(nativeTarget(host)->bf16Features.empty());
  ASSERT_TRUE(addBf16Tiles(amx));
  host.features = strings(amx.features);
  EXPECT_FALSE(nativeTarget(host)->bf16Features.empty());
  Target plain = *findTarget("avx512vnni");
  EXPECT_FALSE(plain.halfPrompts);
  EXPECT_FALSE(addBf16Tiles(plain));
}

TEST(TargetTable, NativeNamesWhatAHostLacks) {
  auto native = nativeTarget(Host{.features = {"avx", "avx2", "bmi2", "f16c"}});
  ASSERT_FALSE(native.ok());
  EXPECT_EQ(native.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(native.status().message(), HasSubstr("'fma'"));
}

} // namespace
} // namespace cortiq::compiler

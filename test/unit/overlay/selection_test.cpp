#include "formats/overlay/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

OverlayCatalog some_catalog() {
  OverlayCatalog catalog;
  catalog.skills = {{"story", "", "own", {}}, {"code", "", "", {}}};
  catalog.masks.resize(2);
  catalog.masks[0].name = "general";
  catalog.masks[1].name = "own";
  return catalog;
}

OverlaySelection selected(const OverlayRequest& request) {
  const auto selection = select_overlay(some_catalog(), request);
  EXPECT_TRUE(selection.ok()) << selection.status().message();
  return *selection;
}

std::string refusal(const OverlayCatalog& catalog, const OverlayRequest& request) {
  const auto selection = select_overlay(catalog, request);
  EXPECT_FALSE(selection.ok());
  return selection.ok() ? "" : selection.status().message();
}

TEST(SelectOverlay, WhatAppliesWhenLittleIsSaid) {
  EXPECT_EQ(selected({}), (OverlaySelection{{}, 0}));
  EXPECT_EQ(selected({.skill = "code", .blend = {}, .task = {}}), (OverlaySelection{{{1, 1}}, 0}));
  EXPECT_EQ(selected({.skill = "story", .blend = {}, .task = {}}), (OverlaySelection{{{0, 1}}, 1})); // brings its mask
  EXPECT_EQ(selected({.skill = "story", .blend = {}, .task = "general"}), (OverlaySelection{{{0, 1}}, 0}));
  EXPECT_EQ(selected({.skill = "none", .blend = {}, .task = "none"}), OverlaySelection());
}

TEST(SelectOverlay, BlendsAreScaledToSumToOne) {
  EXPECT_EQ(selected({.skill = {}, .blend = {{"story", 1}, {"code", 3}}, .task = {}}),
            (OverlaySelection{{{0, 0.25f}, {1, 0.75f}}, 0}));
  EXPECT_EQ(selected({.skill = {}, .blend = {{"code", 0.2}}, .task = {}}), (OverlaySelection{{{1, 1}}, 0}));
  EXPECT_EQ(selected({.skill = {}, .blend = {{"story", 1e-12}, {"code", 3e-12}}, .task = {}}),
            (OverlaySelection{{{0, 0.25f}, {1, 0.75f}}, 0}));
  EXPECT_EQ(selected({.skill = {}, .blend = {{"story", 1.5}, {"code", -0.5}}, .task = {}}),
            (OverlaySelection{{{0, 1.5f}, {1, -0.5f}}, 0}));
}

TEST(SelectOverlay, Refusals) {
  const OverlayCatalog catalog = some_catalog();
  EXPECT_THAT(refusal(catalog, {.skill = "x", .blend = {}, .task = {}}), HasSubstr("'x'; it has: story, code"));
  EXPECT_THAT(refusal(catalog, {.skill = {}, .blend = {}, .task = "x"}), HasSubstr("'x'; it has: general, own"));
  EXPECT_THAT(refusal(OverlayCatalog(), {.skill = "x", .blend = {}, .task = {}}), HasSubstr("it has: none"));
  EXPECT_THAT(refusal(catalog, {.skill = {}, .blend = {{"code", 1}, {"code", 1}}, .task = {}}), HasSubstr("twice"));
  EXPECT_THAT(refusal(catalog, {.skill = "code", .blend = {{"code", 1}}, .task = {}}), HasSubstr("exclude"));
  for (const std::vector<BlendPart>& blend : {std::vector<BlendPart>{{"code", 0}},
                                              {{"code", -1}},
                                              {{"story", 0.5}, {"code", -0.5}},
                                              {{"story", 1}, {"code", -2}}})
    EXPECT_THAT(refusal(catalog, {.skill = {}, .blend = blend, .task = {}}), HasSubstr("more than 0"));
  EXPECT_THAT(refusal(catalog, {.skill = {}, .blend = {{"story", 1e308}, {"code", 1e308}}, .task = {}}),
              HasSubstr("no finite sum"));
  OverlayCatalog fixed;
  fixed.fixed_task = "deep";
  EXPECT_TRUE(select_overlay(fixed, {.skill = {}, .blend = {}, .task = "deep"}).ok());
  EXPECT_THAT(refusal(fixed, {.skill = {}, .blend = {}, .task = "none"}), HasSubstr("compiled for task 'deep' alone"));
}

TEST(ParseBlend, PartsAndWeights) {
  const auto parts = parse_blend("a:0.5,b.c:2");
  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[1].skill, "b.c");
  EXPECT_EQ((*parts)[1].weight, 2);
  for (const char* text : {"", "a", "a:", ":1", "a:x", "a:1,", "a:nan"})
    EXPECT_FALSE(parse_blend(text).ok()) << text;
}

TEST(DescribeSelection, InWords) {
  const OverlayCatalog catalog = some_catalog();
  EXPECT_EQ(describe_selection(catalog, {{}, 0}), "no skill, task general");
  EXPECT_EQ(describe_selection(catalog, {{{0, 0.25f}, {1, 0.75f}}, std::nullopt}),
            "blend story:0.25,code:0.75, no mask");
}

} // namespace
} // namespace cortiq::formats

#include "formats/overlay/routing.h"

#include <cmath>
#include <gtest/gtest.h>

namespace cortiq::formats {
namespace {

// Two skills in the plane: a line through (1, 0) along x, and the point (0, 2).
OverlayCatalog plane(bool unit = false) {
  OverlayCatalog catalog;
  catalog.skills = {{"line", "", "", SkillDescriptor{unit, 3, 1, {1, 0}, {1, 0}, 0.5f, 2}},
                    {"other", "", "", std::nullopt},
                    {"point", "", "", SkillDescriptor{unit, 1, 0, {0, 2}, {}, 0, 1}}};
  return catalog;
}

TEST(Routing, LayersAscendOnce) {
  EXPECT_EQ(routing_layers(plane()), (std::vector<uint32_t>{1, 3}));
}

TEST(Routing, NearestSubspaceWithinTheThreshold) {
  // From (4, 1): 1 above the line, |(4, 1) - (0, 2)|^2 = 17 from the point; squared length 17.
  const Routing routing = route(plane(), {{1, {4, 1}}, {3, {4, 1}}});
  ASSERT_EQ(routing.scores.size(), 2u);
  EXPECT_EQ(routing.scores[0].skill, 0u);
  EXPECT_DOUBLE_EQ(routing.scores[0].error, 1);
  EXPECT_DOUBLE_EQ(routing.scores[0].relative, 1.0 / 17);
  EXPECT_DOUBLE_EQ(routing.scores[1].relative, 1);
  EXPECT_EQ(routing.skill, 0u);
}

TEST(Routing, FarFromAllIsNovel) {
  const Routing routing = route(plane(), {{1, {0, -1}}, {3, {0, -1}}});
  EXPECT_EQ(routing.scores[0].skill, 0u);
  EXPECT_DOUBLE_EQ(routing.novelty, 1);
  EXPECT_EQ(routing.skill, std::nullopt);
}

TEST(Routing, UnitLengthFirst) {
  const Routing routing = route(plane(true), {{1, {0, 10}}, {3, {0, 10}}});
  EXPECT_DOUBLE_EQ(routing.scores[0].error, 1); // of (0, 1), from the line and from the point alike
  EXPECT_DOUBLE_EQ(routing.scores[1].error, 1);
  EXPECT_EQ(routing.scores[0].skill, 0u);
}

// The formula of the specification, written out.
TEST(Routing, CalibratedNovelty) {
  OverlayCatalog catalog = plane();
  catalog.calibration = RoutingCalibration{4, 0.6};
  const Routing routing = route(catalog, {{1, {4, 1}}, {3, {4, 1}}});
  const double confidence = 1 / (1 + std::exp((1.0 - 17.0) / 4)), margin = 1 / 2.0 - 1 / 18.0, z = (1 - 0.5) / 2;
  EXPECT_NEAR(routing.novelty, 0.5 / (1 + std::exp(-z)) + 0.25 / (1 + 8 * margin) + 0.25 * (1 - confidence), 1e-12);
  EXPECT_EQ(routing.threshold, 0.6);
  EXPECT_EQ(routing.skill, 0u);
}

} // namespace
} // namespace cortiq::formats

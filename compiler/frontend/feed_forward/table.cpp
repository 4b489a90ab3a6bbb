#include "compiler/frontend/feed_forward/FeedForward.h"

namespace cortiq::compiler {

namespace {

struct Row {
  FeedForward kind;
  BuildFeedForward build;
};

constexpr Row kRows[] = {
    {FeedForward::kDualExperts, buildDualExperts},
    {FeedForward::kExperts, buildExperts},
    {FeedForward::kGated, buildGatedFeedForward},
    {FeedForward::kPlain, buildPlainFeedForward},
};

} // namespace

BuildFeedForward feedForwardBuilder(FeedForward kind) {
  for (const Row& row : kRows)
    if (row.kind == kind)
      return row.build;
  llvm_unreachable("every kind has a row");
}

} // namespace cortiq::compiler

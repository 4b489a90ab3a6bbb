#include "runtime/batch/page_cache.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace cortiq::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Page = PageCache::Page;

/// `count` tokens that begin as those of `seed`.
std::vector<uint32_t> text(uint32_t seed, uint32_t count) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < count; ++i)
    out.push_back(seed * 1000 + i);
  return out;
}

/// Takes pages for a text and leaves them known, held by the caller; the last one, if not whole, by nobody.
std::vector<Page> fill(PageCache& cache, PageCache::Root root, std::span<const uint32_t> tokens) {
  std::vector<Page> pages;
  for (; !tokens.empty(); tokens = tokens.subspan(std::min<size_t>(tokens.size(), 64))) {
    const Page page = cache.take().value();
    const Page kept = cache.remember(root, pages.empty() ? PageCache::kNone : pages.back(),
                                     tokens.first(std::min<size_t>(tokens.size(), 64)), page);
    if (kept != PageCache::kNone)
      pages.push_back(kept);
  }
  return pages;
}

TEST(PageCache, FindsTheLongestBeginning) {
  PageCache cache(16);
  const auto root = cache.add_root(), other = cache.add_root();
  const std::vector<Page> pages = fill(cache, root, text(1, 150));
  EXPECT_EQ(pages.size(), 2u);
  EXPECT_EQ(cache.known(root, text(1, 150)), 150u);
  EXPECT_EQ(cache.known(root, text(1, 400)), 150u);
  EXPECT_EQ(cache.known(root, text(1, 100)), 100u);
  EXPECT_EQ(cache.known(root, text(2, 100)), 0u);
  EXPECT_EQ(cache.known(other, text(1, 100)), 0u);
  std::vector<uint32_t> forked = text(1, 140);
  forked[130] = 7;
  EXPECT_EQ(cache.known(root, forked), 130u);
  const auto found = cache.find(root, forked);
  EXPECT_EQ(found.pages, pages);
  EXPECT_NE(found.partial, PageCache::kNone);
  EXPECT_EQ(found.tokens, 2u);
}

TEST(PageCache, APageComputedTwiceIsKeptOnce) {
  PageCache cache(8);
  const auto root = cache.add_root();
  const std::vector<Page> first = fill(cache, root, text(1, 128));
  EXPECT_EQ(fill(cache, root, text(1, 128)), first);
  EXPECT_EQ(cache.available(), 6u);
  cache.release(first);
  EXPECT_EQ(cache.available(), 6u); // the second holder has them still
  cache.release(first);
  EXPECT_EQ(cache.available(), 8u);
  EXPECT_EQ(cache.idle(), 2u);
}

TEST(PageCache, APartGivesWayToALongerOne) {
  PageCache cache(8);
  const auto root = cache.add_root();
  EXPECT_THAT(fill(cache, root, text(1, 10)), IsEmpty());
  EXPECT_THAT(fill(cache, root, text(1, 20)), IsEmpty());
  EXPECT_EQ(cache.idle(), 1u);
  EXPECT_THAT(fill(cache, root, text(1, 15)), IsEmpty());
  EXPECT_EQ(cache.known(root, text(1, 64)), 20u);
  EXPECT_EQ(fill(cache, root, text(1, 64)).size(), 1u);
  EXPECT_EQ(cache.idle(), 0u);
}

TEST(PageCache, ForgetsWhatWasUsedLongestAgoAndEndsBeforeBeginnings) {
  PageCache cache(4);
  const auto root = cache.add_root();
  const std::vector<Page> a = fill(cache, root, text(1, 128)), b = fill(cache, root, text(2, 128));
  EXPECT_FALSE(cache.take().has_value()); // all have holders
  cache.release(a);
  cache.release(b);
  EXPECT_EQ(cache.available(), 4u);
  cache.release(cache.find(root, text(1, 128)).pages); // used again
  EXPECT_EQ(cache.take(), b[1]);
  EXPECT_EQ(cache.known(root, text(2, 128)), 64u);
  EXPECT_EQ(cache.take(), b[0]);
  EXPECT_EQ(cache.take(), a[1]);
  EXPECT_EQ(cache.known(root, text(1, 128)), 64u);
}

// Random texts over a small alphabet against a map from page to what was written into it.
TEST(PageCache, NeverGivesAPageOfAnotherText) {
  std::mt19937 random(7);
  PageCache cache(40);
  const PageCache::Root roots[] = {cache.add_root(), cache.add_root()};
  struct Sequence {
    PageCache::Root root;
    std::vector<uint32_t> tokens;
    std::vector<Page> pages;
  };
  std::map<Page, std::vector<uint32_t>> contents; ///< the text up to and with the page's last token, behind its root
  std::vector<Sequence> open;
  uint64_t found_tokens = 0;
  const auto label = [](PageCache::Root root, std::span<const uint32_t> tokens) {
    std::vector<uint32_t> out = {root};
    out.insert(out.end(), tokens.begin(), tokens.end());
    return out;
  };
  for (int round = 0; round < 4000; ++round) {
    if (open.size() < 6 && random() % 2 == 0) {
      Sequence s{roots[random() % 2], {}, {}};
      std::vector<uint32_t> wanted;
      for (uint32_t i = 0, n = 1 + random() % 300; i < n; ++i)
        wanted.push_back(i % 50 == 49 ? random() % 2 : i);
      const PageCache::Match found = cache.find(s.root, wanted);
      s.pages = found.pages;
      uint64_t known = found.pages.size() * 64;
      for (size_t i = 0; i < found.pages.size(); ++i)
        ASSERT_EQ(contents[found.pages[i]], label(s.root, std::span(wanted).first((i + 1) * 64)));
      if (found.partial != PageCache::kNone) {
        known += found.tokens;
        const std::vector<uint32_t> want = label(s.root, std::span(wanted).first(known));
        ASSERT_TRUE(std::equal(want.begin(), want.end(), contents[found.partial].begin()));
        cache.release(found.partial);
      }
      found_tokens += known;
      bool fits = true;
      for (uint64_t i = s.pages.size(); i * 64 < wanted.size(); ++i) {
        const auto page = cache.take();
        if (!page) {
          fits = false;
          break;
        }
        const std::span<const uint32_t> upto = std::span(wanted).first(std::min<size_t>(wanted.size(), (i + 1) * 64));
        contents[*page] = label(s.root, upto);
        const Page kept =
            cache.remember(s.root, i == 0 ? PageCache::kNone : s.pages.back(), upto.subspan(i * 64), *page);
        if (kept != PageCache::kNone)
          s.pages.push_back(kept);
      }
      s.tokens = wanted;
      open.push_back(s);
      if (!fits) {
        cache.release(open.back().pages);
        open.pop_back();
      }
    } else if (!open.empty()) {
      const size_t i = random() % open.size();
      cache.release(open[i].pages);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    uint64_t held = 0;
    std::vector<bool> seen(40);
    for (const Sequence& s : open)
      for (const Page page : s.pages)
        if (!seen[page]) {
          seen[page] = true;
          ++held;
        }
    ASSERT_EQ(cache.available(), 40 - held);
  }
  EXPECT_GT(found_tokens, 10000u);
}

} // namespace
} // namespace cortiq::runtime

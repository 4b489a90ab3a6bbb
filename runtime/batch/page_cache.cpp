#include "runtime/batch/page_cache.h"

#include <algorithm>
#include <cassert>

namespace cortiq::runtime {
namespace {

uint32_t common(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return static_cast<uint32_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

} // namespace

PageCache::PageCache(uint32_t pages) : entries_(pages) {
  // The lowest number is given first: memory that was touched is touched again.
  for (uint32_t page = pages; page-- > 0;)
    free_.push_back(page);
}

PageCache::Root PageCache::add_root() {
  roots_.emplace_back();
  return static_cast<Root>(roots_.size() - 1);
}

std::optional<PageCache::Page> PageCache::take() {
  if (free_.empty()) {
    if (oldest_.empty())
      return std::nullopt;
    forget(oldest_.begin()->second);
  }
  const Page page = free_.back();
  free_.pop_back();
  entries_[page].holders = 1;
  return page;
}

void PageCache::hold(Page page) {
  Entry& entry = entries_[page];
  if (entry.holders++ != 0)
    return;
  assert(entry.known && "a page without holders that is not known is free");
  --idle_;
  oldest_.erase({entry.used, page});
}

void PageCache::release(Page page) {
  Entry& entry = entries_[page];
  assert(entry.holders != 0);
  if (--entry.holders != 0)
    return;
  if (entry.known)
    become_idle(page);
  else
    free_.push_back(page);
}

void PageCache::release(std::span<const Page> pages) {
  for (size_t i = pages.size(); i-- > 0;)
    release(pages[i]);
}

void PageCache::become_idle(Page page) {
  ++idle_;
  entries_[page].used = ++clock_;
  if (entries_[page].children.empty())
    oldest_.insert({entries_[page].used, page});
}

/// Frees a known page without holders and children.
void PageCache::forget(Page page) {
  Entry& entry = entries_[page];
  assert(entry.known && entry.holders == 0 && entry.children.empty());
  oldest_.erase({entry.used, page});
  --idle_;
  std::erase(children(entry.root, entry.parent), page);
  if (entry.parent != kNone) {
    const Entry& parent = entries_[entry.parent];
    if (parent.holders == 0 && parent.children.empty())
      oldest_.insert({parent.used, entry.parent});
  }
  entry = Entry();
  free_.push_back(page);
}

PageCache::Match PageCache::walk(Root root, std::span<const uint32_t> tokens) const {
  Match out;
  Page parent = kNone;
  while (!tokens.empty()) {
    Page best = kNone;
    uint32_t most = 0;
    for (const Page child : children(root, parent))
      if (const uint32_t fits = common(entries_[child].tokens, tokens); fits > most) {
        best = child;
        most = fits;
      }
    if (most < kPositionBlock) {
      out.partial = best;
      out.tokens = most;
      return out;
    }
    out.pages.push_back(best);
    parent = best;
    tokens = tokens.subspan(kPositionBlock);
  }
  return out;
}

PageCache::Match PageCache::find(Root root, std::span<const uint32_t> tokens) {
  Match found = walk(root, tokens);
  for (const Page page : found.pages)
    hold(page);
  if (found.partial != kNone)
    hold(found.partial);
  return found;
}

uint64_t PageCache::known(Root root, std::span<const uint32_t> tokens) const {
  const Match found = walk(root, tokens);
  return found.pages.size() * kPositionBlock + found.tokens;
}

PageCache::Page PageCache::remember(Root root, Page parent, std::span<const uint32_t> tokens, Page page) {
  const bool whole = tokens.size() == kPositionBlock;
  Page shorter = kNone;
  for (const Page child : children(root, parent)) {
    const uint32_t fits = common(entries_[child].tokens, tokens);
    if (fits == tokens.size()) { // known, and maybe more
      if (whole)
        hold(child);
      release(page);
      return whole ? child : kNone;
    }
    if (fits == entries_[child].tokens.size())
      shorter = child;
  }
  if (shorter != kNone && entries_[shorter].holders == 0) // it is not whole, so it has no children
    forget(shorter);
  Entry& entry = entries_[page];
  entry.known = true;
  entry.root = root;
  entry.parent = parent;
  entry.tokens.assign(tokens.begin(), tokens.end());
  children(root, parent).push_back(page);
  if (parent != kNone)
    oldest_.erase({entries_[parent].used, parent});
  if (whole)
    return page;
  release(page);
  return kNone;
}

} // namespace cortiq::runtime

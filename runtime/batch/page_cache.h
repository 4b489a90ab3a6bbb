#pragma once

// The pages of a key/value cache, by number: which sequences have them, and which beginnings of texts they hold. A page
// that no sequence has any more stays as long as its place is not needed, so that a text that begins as an earlier one
// does not compute its beginning again.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// Pages of kPositionBlock positions in trees of known beginnings, one tree for each way of computing (see Root). A
/// page's place in its tree is the tokens of its positions behind those of its parents. Not thread-safe.
class PageCache {
public:
  using Page = uint32_t;
  /// A tree: what was computed under one selection of the overlay.
  using Root = uint32_t;
  static constexpr Page kNone = UINT32_MAX;

  explicit PageCache(uint32_t pages);

  Root add_root();
  bool empty(Root root) const { return roots_[root].empty(); }

  /// A page of any content with one holder; the one of those without a holder that was used longest ago is forgotten
  /// when nothing is free. None when every page has a holder.
  std::optional<Page> take();
  void hold(Page page);
  uint32_t holders(Page page) const { return entries_[page].holders; }
  void release(Page page);
  /// Of a sequence: its last page is forgotten first.
  void release(std::span<const Page> pages);

  /// What is known of a text's beginning.
  struct Match {
    std::vector<Page> pages; ///< whole ones
    Page partial = kNone;    ///< the page whose first positions go on, to be copied and released
    uint32_t tokens = 0;     ///< positions of it that fit
  };
  /// The caller is among the holders of all of its pages from then on.
  Match find(Root root, std::span<const uint32_t> tokens);
  /// Tokens of find() without taking hold of anything.
  uint64_t known(Root root, std::span<const uint32_t> tokens) const;

  /// `page`, which the caller holds, has the positions of `tokens` (at most a page's) behind those of `parent` (kNone:
  /// it is the first). A whole page that is known already is given back, and the known one returned to be held instead;
  /// else `page` is returned. Of a page that is not whole the caller lets go: kNone is returned.
  Page remember(Root root, Page parent, std::span<const uint32_t> tokens, Page page);

  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  /// Pages that take() can give.
  uint32_t available() const { return static_cast<uint32_t>(free_.size()) + idle_; }
  /// Of those, pages that hold a known beginning.
  uint32_t idle() const { return idle_; }

private:
  struct Entry {
    uint32_t holders = 0;
    bool known = false;
    Root root = 0;
    Page parent = kNone;
    std::vector<uint32_t> tokens;
    std::vector<Page> children;
    uint64_t used = 0; ///< when it lost its last holder
  };

  Match walk(Root root, std::span<const uint32_t> tokens) const;
  const std::vector<Page>& children(Root root, Page parent) const {
    return parent == kNone ? roots_[root] : entries_[parent].children;
  }
  std::vector<Page>& children(Root root, Page parent) {
    return parent == kNone ? roots_[root] : entries_[parent].children;
  }
  void become_idle(Page page);
  void forget(Page page);

  std::vector<Entry> entries_;
  std::vector<std::vector<Page>> roots_;
  std::vector<Page> free_;
  std::set<std::pair<uint64_t, Page>> oldest_; ///< those without holders and children, by Entry::used
  uint32_t idle_ = 0;                          ///< known pages without holders
  uint64_t clock_ = 0;
};

} // namespace cortiq::runtime

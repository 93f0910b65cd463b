// PageCache: which KV page belongs to whom. It counts pages and is told their size; the bytes are somebody else's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quern/base/result.h"

namespace quern::kv {

using PageId = std::int32_t;
using TokenId = std::int32_t;

struct PageCacheOptions {
  std::int32_t page_tokens = 16;
  std::uint64_t page_bytes = 0;    // of all layers together
  std::uint64_t budget_bytes = 0;  // pages of rows and of the prefix cache together
  /// Most bytes of pages that no row holds; nothing = whatever the rows leave.
  std::optional<std::uint64_t> prefix_max_bytes = {};
};

/// `page_bytes` times pages, and how often a prefix was found.
struct KvReport {
  std::uint64_t held_bytes = 0;       // pages that rows hold
  std::uint64_t projected_bytes = 0;  // what the rows may come to hold; may exceed the budget
  std::uint64_t budget_bytes = 0;
  std::uint64_t prefix_bytes = 0;  // pages that only the prefix cache keeps
  std::optional<std::uint64_t> prefix_max_bytes;
  std::uint64_t prefix_hits = 0;    // opens that found at least a page
  std::uint64_t prefix_misses = 0;  // opens with a full page to look for that found none
};

/// One row's pages. Made by PageCache::open or fork; must be closed before its cache goes.
struct Sequence {
  std::string name_space;       // tokens are shared within it only
  std::vector<TokenId> tokens;  // stored so far
  std::vector<PageId> pages;    // page table, for tokens.size() and what was reserved beyond
  std::int64_t projected_tokens = 0;
  std::size_t published_pages = 0;  // leading pages that stand in the prefix index
};

/// A page's content is to be copied before the next write: a shared partial page becomes the row's own.
struct PageCopy {
  PageId from = 0;
  PageId to = 0;
};

/// Pages with reference counts, copy-on-write, and a prefix index over full pages (a hash chained over the whole
/// prefix, *and* the tokens compared). One thread owns it. Pages of the index that no row holds are given up least
/// recently used first, a page before the one that it continues. The byte caps are checked before anything is
/// allocated.
class PageCache {
 public:
  explicit PageCache(const PageCacheOptions& options);

  /// A new row. `prompt` is looked up in the index: the row starts with the longest run of full pages found, but for
  /// the last token at least, which must be computed. Allocates nothing. Mutates order of use, counts and hits.
  [[nodiscard]] Sequence open(std::string name_space, std::span<const TokenId> prompt, std::int64_t projected_tokens);
  /// Another row with the same tokens and pages, the partial one shared until either writes (n > 1).
  [[nodiscard]] Sequence fork(const Sequence& sequence);
  /// Pages for `tokens` more, free ones first, then the prefix cache's. kMemoryAdmission when there aren't enough:
  /// nothing has changed then. The copies must be carried out before the next forward pass.
  [[nodiscard]] Result<std::vector<PageCopy>> reserve(Sequence& sequence, std::int64_t tokens);
  /// The tokens were computed and stored in the reserved pages. Pages that became full enter the index; one that is
  /// there already takes the place of the row's own.
  void commit(Sequence& sequence, std::span<const TokenId> tokens);
  /// The row ends. Its indexed pages stay as prefix cache within the cap, the others are free at once.
  void close(Sequence& sequence);
  /// Gives up all pages of the prefix cache that no row holds.
  void clear_prefixes();

  /// Pages that reserve() could still hand out.
  [[nodiscard]] std::int64_t available_pages() const;
  [[nodiscard]] std::int64_t total_pages() const { return static_cast<std::int64_t>(pages_.size()); }
  /// Pages that a row of so many tokens takes.
  [[nodiscard]] std::int64_t pages_for(std::int64_t tokens) const;
  /// Tokens that open() would find in the index. Changes nothing.
  [[nodiscard]] std::int64_t cached_tokens(std::string_view name_space, std::span<const TokenId> prompt) const;
  [[nodiscard]] KvReport report() const;

  /// Every invariant, from scratch, with `open` = all sequences that aren't closed. kInternal names the first that is
  /// broken.
  [[nodiscard]] Result<void> check_integrity(std::span<const Sequence* const> open) const;

 private:
  struct Page {
    std::int32_t references = 0;  // rows
    bool indexed = false;
    std::uint64_t hash = 0;
    PageId parent = kRoot;
    std::int32_t children = 0;        // indexed pages that continue this one
    std::string name_space;           // of indexed pages
    std::vector<TokenId> tokens;      // page_tokens of them, when indexed
    std::list<PageId>::iterator use;  // place in unused_, when indexed and without references
  };
  static constexpr PageId kRoot = -1;

  [[nodiscard]] std::uint64_t chain(std::string_view name_space, PageId parent, std::span<const TokenId> tokens) const;
  [[nodiscard]] std::optional<PageId> find(std::string_view name_space, PageId parent,
                                           std::span<const TokenId> tokens) const;
  [[nodiscard]] std::vector<PageId> match(std::string_view name_space, std::span<const TokenId> prompt) const;
  PageId allocate();
  void hold(PageId page);
  void drop(PageId page, std::list<PageId>::iterator place);
  void publish(Sequence& sequence, std::size_t index);
  void evict_oldest();
  void trim_prefixes();
  [[nodiscard]] std::span<const TokenId> page_tokens(std::span<const TokenId> tokens, std::size_t index) const;

  PageCacheOptions options_;
  std::vector<Page> pages_;
  std::vector<PageId> free_;
  std::list<PageId> unused_;  // indexed and held by no row, the least recently used first
  std::unordered_multimap<std::uint64_t, PageId> index_;
  std::int64_t projected_pages_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace quern::kv

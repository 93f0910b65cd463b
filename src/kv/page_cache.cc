// PageCache: reference counts, the prefix index and its order of use.
#include "quern/kv/page_cache.h"

#include <algorithm>
#include <utility>

#include "quern/base/check.h"

namespace quern::kv {
namespace {

constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325ULL;
constexpr std::uint64_t kFnvPrime = 0x100000001b3ULL;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((value >> (8 * byte)) & 0xffU)) * kFnvPrime;
  return hash;
}

}  // namespace

PageCache::PageCache(const PageCacheOptions& options) : options_(options) {
  QUERN_CHECK(options.page_tokens > 0 && options.page_bytes > 0);
  pages_.resize(options.budget_bytes / options.page_bytes);
  free_.reserve(pages_.size());
  for (auto page = static_cast<PageId>(pages_.size()); page-- > 0;) free_.push_back(page);  // page 0 is taken first
}

std::int64_t PageCache::pages_for(std::int64_t tokens) const {
  return (tokens + options_.page_tokens - 1) / options_.page_tokens;
}

std::span<const TokenId> PageCache::page_tokens(std::span<const TokenId> tokens, std::size_t index) const {
  const auto size = static_cast<std::size_t>(options_.page_tokens);
  return tokens.subspan(index * size, size);
}

std::uint64_t PageCache::chain(std::string_view name_space, PageId parent, std::span<const TokenId> tokens) const {
  std::uint64_t hash = kFnvOffset;
  if (parent == kRoot) {
    for (const char c : name_space) hash = mix(hash, static_cast<unsigned char>(c));
  } else {
    hash = mix(hash, pages_[parent].hash);
  }
  for (const TokenId token : tokens) hash = mix(hash, static_cast<std::uint32_t>(token));
  return hash;
}

std::optional<PageId> PageCache::find(std::string_view name_space, PageId parent,
                                      std::span<const TokenId> tokens) const {
  const auto [first, last] = index_.equal_range(chain(name_space, parent, tokens));
  for (auto it = first; it != last; ++it) {
    const Page& page = pages_[it->second];
    // The parent was compared in the same way, so that equal parents mean equal prefixes.
    if (page.parent == parent && page.name_space == name_space && std::ranges::equal(page.tokens, tokens))
      return it->second;
  }
  return std::nullopt;
}

std::vector<PageId> PageCache::match(std::string_view name_space, std::span<const TokenId> prompt) const {
  std::vector<PageId> found;
  if (prompt.empty()) return found;
  const std::size_t full = (prompt.size() - 1) / static_cast<std::size_t>(options_.page_tokens);
  PageId parent = kRoot;
  for (std::size_t i = 0; i < full; ++i) {
    const auto page = find(name_space, parent, page_tokens(prompt, i));
    if (!page) break;
    found.push_back(*page);
    parent = *page;
  }
  return found;
}

std::int64_t PageCache::cached_tokens(std::string_view name_space, std::span<const TokenId> prompt) const {
  return static_cast<std::int64_t>(match(name_space, prompt).size()) * options_.page_tokens;
}

Sequence PageCache::open(std::string name_space, std::span<const TokenId> prompt, std::int64_t projected_tokens) {
  Sequence sequence;
  sequence.pages = match(name_space, prompt);
  sequence.name_space = std::move(name_space);
  sequence.published_pages = sequence.pages.size();
  sequence.projected_tokens = projected_tokens;
  const std::size_t found = sequence.pages.size() * static_cast<std::size_t>(options_.page_tokens);
  sequence.tokens.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(found));
  for (const PageId page : sequence.pages) hold(page);
  if (found > 0) {
    ++hits_;
  } else if (std::ssize(prompt) > options_.page_tokens) {
    ++misses_;
  }
  projected_pages_ += pages_for(projected_tokens);
  return sequence;
}

Sequence PageCache::fork(const Sequence& sequence) {
  Sequence other = sequence;
  // What was reserved beyond the tokens stays with the first.
  other.pages.resize(static_cast<std::size_t>(pages_for(std::ssize(sequence.tokens))));
  for (const PageId page : other.pages) hold(page);
  projected_pages_ += pages_for(other.projected_tokens);
  return other;
}

Result<std::vector<PageCopy>> PageCache::reserve(Sequence& sequence, std::int64_t tokens) {
  QUERN_CHECK(tokens >= 0);
  const std::int64_t stored = std::ssize(sequence.tokens);
  const std::int64_t wanted = pages_for(stored + tokens);
  const std::int64_t more = std::max<std::int64_t>(0, wanted - std::ssize(sequence.pages));
  const auto partial = static_cast<std::size_t>(stored / options_.page_tokens);
  const bool writes_partial = tokens > 0 && stored % options_.page_tokens != 0;
  const bool copies = writes_partial && pages_[sequence.pages[partial]].references > 1;
  if (more + (copies ? 1 : 0) > available_pages()) {
    return fail(ErrorCode::kMemoryAdmission, "{} KV pages are needed and {} are free", more + (copies ? 1 : 0),
                available_pages());
  }
  std::vector<PageCopy> result;
  if (copies) {
    const PageId own = allocate();
    result.push_back({sequence.pages[partial], own});
    drop(sequence.pages[partial], unused_.end());
    sequence.pages[partial] = own;
  }
  for (std::int64_t i = 0; i < more; ++i) sequence.pages.push_back(allocate());
  return result;
}

void PageCache::commit(Sequence& sequence, std::span<const TokenId> tokens) {
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  QUERN_CHECK(pages_for(std::ssize(sequence.tokens)) <= std::ssize(sequence.pages));
  const std::size_t full = sequence.tokens.size() / static_cast<std::size_t>(options_.page_tokens);
  while (sequence.published_pages < full) publish(sequence, sequence.published_pages++);
}

void PageCache::publish(Sequence& sequence, std::size_t index) {
  const PageId parent = index == 0 ? kRoot : sequence.pages[index - 1];
  const auto tokens = page_tokens(sequence.tokens, index);
  const PageId own = sequence.pages[index];
  if (const auto same = find(sequence.name_space, parent, tokens)) {
    hold(*same);
    drop(own, unused_.end());
    sequence.pages[index] = *same;
    return;
  }
  Page& page = pages_[own];
  page.indexed = true;
  page.hash = chain(sequence.name_space, parent, tokens);
  page.parent = parent;
  page.name_space = sequence.name_space;
  page.tokens.assign(tokens.begin(), tokens.end());
  index_.emplace(page.hash, own);
  if (parent != kRoot) ++pages_[parent].children;
}

void PageCache::close(Sequence& sequence) {
  projected_pages_ -= pages_for(sequence.projected_tokens);
  // A page is always more recently used than those that continue it. A row that the cap can't hold goes before all
  // others, up to where others continue it too.
  const bool too_large =
      options_.prefix_max_bytes && sequence.pages.size() * options_.page_bytes > *options_.prefix_max_bytes;
  auto place = too_large ? unused_.begin() : unused_.end();
  for (std::size_t i = sequence.pages.size(); i-- > 0;) {
    const std::int32_t own = i + 1 < sequence.published_pages ? 1 : 0;
    if (pages_[sequence.pages[i]].children > own) place = unused_.end();
    drop(sequence.pages[i], place);
  }
  sequence = Sequence();
  trim_prefixes();
}

void PageCache::hold(PageId id) {
  Page& page = pages_[id];
  if (page.references++ == 0) unused_.erase(page.use);
}

void PageCache::drop(PageId id, std::list<PageId>::iterator place) {
  Page& page = pages_[id];
  QUERN_CHECK(page.references > 0);
  if (--page.references > 0) return;
  if (page.indexed) {
    page.use = unused_.insert(place, id);
  } else {
    free_.push_back(id);
  }
}

PageId PageCache::allocate() {
  if (free_.empty()) evict_oldest();
  const PageId id = free_.back();
  free_.pop_back();
  pages_[id].references = 1;
  return id;
}

void PageCache::evict_oldest() {
  QUERN_CHECK(!unused_.empty());
  const PageId id = unused_.front();
  unused_.pop_front();
  Page& page = pages_[id];
  QUERN_CHECK(page.children == 0);
  const auto [first, last] = index_.equal_range(page.hash);
  index_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == id; }));
  if (page.parent != kRoot) --pages_[page.parent].children;
  page = Page();
  free_.push_back(id);
}

void PageCache::trim_prefixes() {
  if (!options_.prefix_max_bytes) return;
  while (unused_.size() * options_.page_bytes > *options_.prefix_max_bytes) evict_oldest();
}

void PageCache::clear_prefixes() {
  while (!unused_.empty()) evict_oldest();
}

std::int64_t PageCache::available_pages() const {
  return std::ssize(free_) + std::ssize(unused_);
}

KvReport PageCache::report() const {
  KvReport report;
  report.held_bytes = (pages_.size() - free_.size() - unused_.size()) * options_.page_bytes;
  report.projected_bytes = static_cast<std::uint64_t>(projected_pages_) * options_.page_bytes;
  report.budget_bytes = options_.budget_bytes;
  report.prefix_bytes = unused_.size() * options_.page_bytes;
  report.prefix_max_bytes = options_.prefix_max_bytes;
  report.prefix_hits = hits_;
  report.prefix_misses = misses_;
  return report;
}

Result<void> PageCache::check_integrity(std::span<const Sequence* const> open) const {
  const auto broken = [](PageId page, const char* what) {
    return fail(ErrorCode::kInternal, "page {}: {}", page, what);
  };
  std::vector<std::int32_t> references(pages_.size());
  std::int64_t projected = 0;
  for (const Sequence* sequence : open) {
    projected += pages_for(sequence->projected_tokens);
    if (std::ssize(sequence->pages) < pages_for(std::ssize(sequence->tokens))) {
      return fail(ErrorCode::kInternal, "a row has {} pages for {} tokens", sequence->pages.size(),
                  sequence->tokens.size());
    }
    PageId parent = kRoot;
    for (std::size_t i = 0; i < sequence->pages.size(); ++i) {
      const PageId id = sequence->pages[i];
      ++references[id];
      if (i >= sequence->published_pages) continue;
      const Page& page = pages_[id];
      if (!page.indexed || page.parent != parent) return broken(id, "published, but not where its row expects it");
      if (!std::ranges::equal(page.tokens, page_tokens(sequence->tokens, i)))
        return broken(id, "indexed under other tokens");
      parent = id;
    }
  }
  if (projected != projected_pages_) return fail(ErrorCode::kInternal, "the projection is off");
  std::vector<std::int32_t> children(pages_.size());
  std::vector<bool> seen(pages_.size());
  std::size_t indexed = 0;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    const Page& page = pages_[i];
    const auto id = static_cast<PageId>(i);
    if (page.references != references[i]) return broken(id, "held by another number of rows than it counts");
    if (!page.indexed) continue;
    ++indexed;
    if (find(page.name_space, page.parent, page.tokens) != id) return broken(id, "not found in the index");
    if (page.parent == kRoot) continue;
    if (!pages_[page.parent].indexed) return broken(id, "continues a page that isn't indexed");
    if (pages_[page.parent].references < page.references) return broken(id, "held by more rows than what it continues");
    ++children[page.parent];
  }
  if (indexed != index_.size())
    return fail(ErrorCode::kInternal, "the index lists {} pages of {}", index_.size(), indexed);
  for (const PageId id : unused_) {
    const Page& page = pages_[id];
    if (seen[id] || !page.indexed || page.references != 0) return broken(id, "wrongly kept as prefix cache");
    if (page.parent != kRoot && seen[page.parent]) return broken(id, "would go after the page that it continues");
    seen[id] = true;
  }
  for (const PageId id : free_) {
    if (seen[id] || pages_[id].indexed || pages_[id].references != 0) return broken(id, "wrongly free");
    seen[id] = true;
  }
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    if (pages_[i].children != children[i]) return broken(static_cast<PageId>(i), "counts another number of children");
    if (!seen[i] && pages_[i].references == 0) return broken(static_cast<PageId>(i), "lost");
  }
  if (options_.prefix_max_bytes && unused_.size() * options_.page_bytes > *options_.prefix_max_bytes) {
    return fail(ErrorCode::kInternal, "the prefix cache is over its cap");
  }
  return {};
}

}  // namespace quern::kv

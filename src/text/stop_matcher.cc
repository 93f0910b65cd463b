// Stop strings over a stream of text.
#include "quern/text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace quern::text {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  for (const std::string& stop : stops_) longest_ = std::max(longest_, stop.size());
}

StopMatcher::Step StopMatcher::push(std::string_view piece) {
  // Bytes are taken one after another, so that what a reply ends with doesn't depend on how it was cut into pieces: the
  // first byte that completes a stop ends it, and of those completed there the longest began first.
  std::string text = std::exchange(held_, {});
  const std::size_t begin = text.size();
  text += piece;
  const auto ends_with = [&](std::size_t end, std::string_view stop) {
    return stop.size() <= end && std::string_view(text).substr(end - stop.size(), stop.size()) == stop;
  };
  for (std::size_t end = begin + 1; end <= text.size(); ++end) {
    std::size_t matched = 0;
    for (const std::string& stop : stops_) {
      if (stop.size() > matched && ends_with(end, stop)) matched = stop.size();
    }
    if (matched > 0) return {.text = text.substr(0, end - matched), .stopped = true};
  }

  // What is held back is the longest end of the text that begins a stop.
  const std::size_t most = longest_ == 0 ? 0 : std::min(text.size(), longest_ - 1);
  std::size_t kept = most;
  for (; kept > 0; --kept) {
    const std::string_view tail = std::string_view(text).substr(text.size() - kept);
    if (std::ranges::any_of(stops_, [&](std::string_view stop) { return stop.starts_with(tail); })) break;
  }
  held_ = text.substr(text.size() - kept);
  text.resize(text.size() - kept);
  return {.text = std::move(text), .stopped = false};
}

std::string StopMatcher::finish() {
  return std::exchange(held_, {});
}

}  // namespace quern::text

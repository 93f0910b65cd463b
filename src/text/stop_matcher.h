// Stop strings over a stream of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

/// Finds stop strings that may span pieces. The match that begins first wins; nothing of it leaks. Not thread-safe.
class StopMatcher {
 public:
  /// Empty strings are no stops.
  explicit StopMatcher(std::vector<std::string> stops);

  struct Step {
    std::string text;      // safe to show now
    bool stopped = false;  // a stop was completed: the reply ends here
  };
  /// After `stopped` it must not be called again.
  [[nodiscard]] Step push(std::string_view piece);
  /// The reply ended otherwise: what was held back as a possible beginning of a stop.
  [[nodiscard]] std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace quern::text

// Stop strings over a stream of text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

/// Finds stop strings that may span pieces. Of the stops that are completed, the one that begins first wins; a longer
/// one that began earlier and is only partial doesn't hold it up. Nothing of a stop leaks. Not thread-safe.
class StopMatcher {
 public:
  /// Empty strings are no stops.
  explicit StopMatcher(std::vector<std::string> stops);

  struct Step {
    std::string text;      // safe to show now
    bool stopped = false;  // a stop was completed: the reply ends here
  };
  /// After `stopped` it must not be called again. Linear in the piece and the stops' lengths.
  [[nodiscard]] Step push(std::string_view piece);
  /// The reply ended otherwise: what was held back as a possible beginning of a stop.
  [[nodiscard]] std::string finish();

 private:
  std::vector<std::string> stops_;
  std::size_t longest_ = 0;
  std::string held_;  // shorter than the longest stop
};

}  // namespace quern::text

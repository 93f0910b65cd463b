// The share rule, applied until the budget or the need is used up: each round but the last satisfies a row.
#include "quern/scheduling/preparation_shares.h"

#include <algorithm>
#include <cstddef>

namespace quern::scheduling {

std::vector<std::int64_t> preparation_shares(std::span<const std::int64_t> left, std::int64_t budget) {
  std::vector<std::int64_t> shares(left.size(), 1);
  std::int64_t rest = budget - static_cast<std::int64_t>(left.size());
  const auto missing = [&](std::size_t i) { return left[i] - shares[i]; };
  const auto give = [&](std::size_t i, std::int64_t tokens) {
    const std::int64_t given = std::min(tokens, missing(i));
    shares[i] += given;
    rest -= given;
  };
  while (rest > 0) {
    std::size_t oldest = left.size();
    std::size_t least = left.size();
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (missing(i) == 0) continue;
      if (oldest == left.size()) oldest = i;
      if (least == left.size() || left[i] < left[least]) least = i;
    }
    if (oldest == left.size()) break;
    const std::int64_t half = rest - rest / 2;
    if (oldest == least) {
      give(oldest, rest);
    } else {
      give(least, rest / 2);
      give(oldest, half);
    }
  }
  return shares;
}

}  // namespace quern::scheduling

// How the tokens of one preparation unit are shared among the rows that prepare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace quern::scheduling {

/// `left[i]` > 0 tokens are missing to row i, the oldest row first. Each row gets one; of the rest half goes to the
/// oldest and half to the row with the least left (the older of equal ones); what these two don't need is shared again
/// in the same way. So a short prompt isn't a long one's hostage, a long one isn't starved by short ones, and equal
/// ones finish one after the other. `budget` below left.size() counts as left.size(). Gives the tokens of each row;
/// their sum is min(budget, all that is left).
[[nodiscard]] std::vector<std::int64_t> preparation_shares(std::span<const std::int64_t> left, std::int64_t budget);

}  // namespace quern::scheduling

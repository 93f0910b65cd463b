// What an absent unit of work does when it's called all the same: that is a bug of the group's.
#include "quern/scheduling/execution_group.h"

namespace quern::scheduling {

Result<void> ExecutionGroup::advance_mixed(std::int64_t /*token_budget*/) {
  return fail(ErrorCode::kInternal, "the group has no packed iteration but demands one");
}

Result<void> ExecutionGroup::advance_task() {
  return fail(ErrorCode::kInternal, "the group has no tasks but lists some");
}

}  // namespace quern::scheduling

// Plain arithmetic, kept apart so that it is tested without a model.
#include "quern/execution/kv_plan.h"

#include <algorithm>
#include <limits>

namespace quern::execution {

Result<KvPlan> plan_kv(const KvPlanInput& input) {
  if (input.asked_context && (*input.asked_context < input.page_tokens || *input.asked_context > input.model_context)) {
    return std::unexpected(Error{ErrorCode::kInvalidRequest,
                                 fmt::format("a context of {} tokens was asked for; the model's allows {} to {}",
                                             *input.asked_context, input.page_tokens, input.model_context),
                                 "context"});
  }
  const std::uint64_t memory = std::min(input.available_bytes, input.limit_bytes.value_or(input.available_bytes));
  const std::uint64_t share = memory - memory / 4;
  const std::uint64_t taken = input.weight_bytes + input.transient_bytes;

  KvPlan plan;
  plan.budget_bytes = input.asked_kv_bytes.value_or(share - std::min(share, taken));
  const auto fits = static_cast<std::int64_t>(
      std::min<std::uint64_t>(plan.budget_bytes / input.page_bytes, std::numeric_limits<std::int32_t>::max()));
  if (fits < 2) {
    return fail(
        ErrorCode::kMemoryAdmission,
        "the KV budget is {} bytes and two pages take {}: of {} bytes of memory 75 % may be used, the weights take "
        "{} and a pass {}",
        plan.budget_bytes, 2 * input.page_bytes, memory, input.weight_bytes, input.transient_bytes);
  }
  const std::int64_t wanted = input.asked_context.value_or(input.model_context);
  plan.context = std::min(wanted, (fits - 1) * input.page_tokens);
  const std::int64_t row_pages = (plan.context + input.page_tokens - 1) / input.page_tokens;
  plan.pages = static_cast<std::int32_t>(std::min(fits, row_pages * input.max_rows + 1));
  return plan;
}

}  // namespace quern::execution

// The KV budget, and the context that follows from it.
#pragma once

#include <cstdint>
#include <optional>

#include "quern/base/result.h"

namespace quern::execution {

struct KvPlanInput {
  std::int64_t model_context = 0;                  // tokens
  std::optional<std::int64_t> asked_context = {};  // at most the model's
  std::uint64_t available_bytes = 0;               // before the model was loaded
  std::optional<std::uint64_t> limit_bytes = {};   // the control group's
  std::uint64_t weight_bytes = 0;
  std::uint64_t transient_bytes = 0;                 // scratch and logits of a pass
  std::optional<std::uint64_t> asked_kv_bytes = {};  // instead of the default budget
  std::uint64_t page_bytes = 0;                      // over all layers
  std::int32_t page_tokens = 16;
  std::int32_t max_rows = 32;
};

struct KvPlan {
  std::uint64_t budget_bytes = 0;
  std::int64_t context = 0;  // min(the model's, what was asked for, what fits)
  std::int32_t pages = 0;    // a row's context and one page for a copy, up to max_rows rows: more couldn't be used
};

/// The budget by default: 75 % of min(available, limit), less weights and transient. kInvalidRequest for a context
/// above the model's or below one page, kMemoryAdmission with the figures when not even one page and its copy fit.
[[nodiscard]] Result<KvPlan> plan_kv(const KvPlanInput& input);

}  // namespace quern::execution

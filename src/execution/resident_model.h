// Loading a model onto its device, with the KV pages that memory allows: what the engine starts from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"
#include "quern/execution/batch_runner.h"
#include "quern/execution/kv_plan.h"

namespace quern::execution {

struct ResidentModelOptions {
  std::string model = {};    // path or synthetic: name
  std::string isa = "auto";  // as cpu::CpuOptions
  bool exact = false;        // activations stay f32
  int threads = 0;           // 0 = the cores that this process may use
  std::optional<std::int64_t> context = {};
  std::optional<std::uint64_t> kv_bytes = {};
  std::int32_t max_rows = 32;
  std::int32_t chunk_tokens = 256;
};

struct ResidentModel {
  std::unique_ptr<BatchRunner> runner;
  KvPlan plan;
  std::size_t weight_bytes = 0;
  std::string device;  // "avx512"
  int threads = 0;
};

/// Errors of the device (kInvalidRequest), of the loader, and of plan_kv.
[[nodiscard]] Result<ResidentModel> load_resident_model(const ResidentModelOptions& options,
                                                        const std::function<void(double)>& progress,
                                                        const CancellationToken& cancellation);

}  // namespace quern::execution

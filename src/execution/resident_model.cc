// Device, weights, plan, pages, in this order.
#include "quern/execution/resident_model.h"

#include <algorithm>

#include "quern/cpu/cpu_device.h"
#include "quern/model/loader.h"
#include "quern/os/cpu_features.h"
#include "quern/os/memory.h"

namespace quern::execution {

Result<ResidentModel> load_resident_model(const ResidentModelOptions& options,
                                          const std::function<void(double)>& progress,
                                          const CancellationToken& cancellation) {
  const os::MemoryStatus memory = os::memory_status();
  ResidentModel resident;
  resident.threads = options.threads > 0 ? options.threads : os::usable_cores();
  QUERN_ASSIGN(auto device,
               cpu::make_cpu_device({.isa = options.isa,
                                     .threads = resident.threads,
                                     .compute = options.exact ? cpu::Compute::kExact : cpu::Compute::kInt8}));
  QUERN_ASSIGN(auto model,
               model::load_model(options.model, *device, progress, cancellation, options.context.value_or(0)));
  resident.device = device->name();
  resident.weight_bytes = model->weight_bytes();

  RunnerLimits limits{.max_rows = options.max_rows, .chunk_tokens = options.chunk_tokens};
  limits.max_outputs = std::max(limits.max_outputs, limits.max_rows);
  const model::ModelConfig& config = model->config();
  const std::size_t logit_bytes =
      static_cast<std::size_t>(limits.max_outputs) * static_cast<std::size_t>(config.vocab) * sizeof(float);
  QUERN_ASSIGN(resident.plan,
               plan_kv({.model_context = config.context,
                        .asked_context = options.context,
                        .available_bytes = memory.available_bytes,
                        .limit_bytes = memory.control_group_limit_bytes,
                        .weight_bytes = resident.weight_bytes,
                        .transient_bytes = model->scratch_bytes(limits.max_tokens(), limits.max_outputs) + logit_bytes,
                        .asked_kv_bytes = options.kv_bytes,
                        .page_bytes = KvStorage::page_bytes(config, device->kv_dtype()),
                        .page_tokens = ops::kPageTokens,
                        .max_rows = options.max_rows}));
  limits.pages = resident.plan.pages;
  const tensor::DType kv_dtype = device->kv_dtype();
  resident.runner = std::make_unique<BatchRunner>(std::move(device), std::move(model), kv_dtype, limits);
  return resident;
}

}  // namespace quern::execution

// The Llama family: Llama, Mistral, SmolLM2 and 3, MiniCPM, Yi.
#pragma once

#include <cstdint>
#include <memory>

#include "quern/base/cancellation.h"
#include "quern/base/result.h"
#include "quern/model/model.h"
#include "quern/model/tensor_source.h"

namespace quern::model {

/// Packs the weights of `config` from `source`, which may go afterwards. `context`: the longest sequence that will be
/// served, which two kinds of rotary scaling depend on.
[[nodiscard]] Result<std::unique_ptr<Model>> load_llama(const ModelConfig& config, std::int64_t context,
                                                        TensorSource& source, ops::Device& device,
                                                        const LoadProgress& progress,
                                                        const CancellationToken& cancellation);

}  // namespace quern::model

// Loading: from a folder, a GGUF file or a synthetic shape to a Model on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/model/model.h"

namespace quern::model {

/// A parsed `synthetic:<shape>?ctx=65536&bits=4&group=64&seed=1`.
struct SyntheticSpec {
  std::string shape;  // one of synthetic_shapes()
  std::int64_t context = 8192;
  int bits = 4;  // 2, 3, 4, 5, 6, 8, 16 (bf16) or 32 (f32)
  int group = 64;
  std::uint64_t seed = 1;
};

/// True for what begins with "synthetic:".
[[nodiscard]] bool is_synthetic(std::string_view name);
/// kInvalidRequest names the part that is wrong and what is known.
[[nodiscard]] Result<SyntheticSpec> parse_synthetic(std::string_view name);
[[nodiscard]] std::vector<std::string_view> synthetic_shapes();

/// `path`: a .gguf file, a folder with config.json and safetensors, or a synthetic: name. Each tensor's source pages
/// are dropped once packed, so that the peak stays near the packed size. Cancellable between tensors. `context`: the
/// longest sequence that will be served, at most the model's; 0 = the model's. Errors: kIo, kInvalidFile,
/// kUnsupportedFormat, kInvalidRequest (a synthetic: name), the cancellation's own.
[[nodiscard]] Result<std::unique_ptr<Model>> load_model(const std::string& path, ops::Device& device,
                                                        const LoadProgress& progress = {},
                                                        const CancellationToken& cancellation = {},
                                                        std::int64_t context = 0);

}  // namespace quern::model

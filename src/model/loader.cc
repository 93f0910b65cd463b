// Loading: from a folder, a GGUF file or a synthetic shape to a Model on a device.
#include "quern/model/loader.h"

#include <algorithm>
#include <filesystem>

#include "quern/model/llama.h"
#include "quern/model/tensor_source.h"

namespace quern::model {

Result<std::unique_ptr<Model>> load_model(const std::string& path, ops::Device& device, const LoadProgress& progress,
                                          const CancellationToken& cancellation, std::int64_t context) {
  const auto load = [&](const ModelConfig& config, TensorSource& source) {
    return load_llama(config, context > 0 ? std::min(context, config.context) : config.context, source, device,
                      progress, cancellation);
  };
  if (is_synthetic(path)) {
    QUERN_ASSIGN(const SyntheticSpec spec, parse_synthetic(path));
    const ModelConfig config = synthetic_config(spec);
    return load(config, *make_synthetic_source(spec, config));
  }
  if (std::filesystem::path(path).extension() == ".gguf") {
    QUERN_ASSIGN(const formats::GgufFile file, formats::GgufFile::open(path));
    QUERN_ASSIGN(const ModelConfig config, config_from_gguf(file));
    return load(config, *make_gguf_source(file, config));
  }
  QUERN_ASSIGN(const formats::HfConfig hf, formats::HfConfig::open(path));
  QUERN_ASSIGN(const ModelConfig config, config_from_hf(hf));
  QUERN_ASSIGN(const formats::SafeTensors tensors, formats::SafeTensors::open(path));
  return load(config, *make_safetensors_source(tensors, hf, config));
}

}  // namespace quern::model

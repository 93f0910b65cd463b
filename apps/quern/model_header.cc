// Headers of GGUF files and of Hugging Face folders.
#include "model_header.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "quern/formats/gguf.h"
#include "quern/formats/hf_config.h"
#include "quern/formats/safetensors.h"

namespace quern::app {
namespace {

namespace fs = std::filesystem;

/// The key with the most bytes.
std::string heaviest(const std::map<std::string, std::uint64_t>& bytes_by_kind) {
  const auto most = std::ranges::max_element(bytes_by_kind, {}, &std::pair<const std::string, std::uint64_t>::second);
  return most == bytes_by_kind.end() ? std::string() : most->first;
}

Result<ModelHeader> gguf_header(const fs::path& path) {
  QUERN_ASSIGN(const auto file, formats::GgufFile::open(path));
  QUERN_ASSIGN(auto config, model::config_from_gguf(file));
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& tensor : file.tensors())
    bytes[std::string(tensor::encoding_name(tensor.encoding))] += tensor.data.size();
  return ModelHeader{std::move(config), heaviest(bytes), fs::file_size(path)};
}

Result<ModelHeader> folder_header(const fs::path& path) {
  QUERN_ASSIGN(const auto hf, formats::HfConfig::open(path));
  QUERN_ASSIGN(auto config, model::config_from_hf(hf));
  QUERN_ASSIGN(const auto weights, formats::SafeTensors::open(path));
  std::map<std::string, std::uint64_t> bytes;
  ModelHeader header{std::move(config), {}, 0};
  for (const auto& [name, tensor] : weights.tensors()) {
    bytes[std::string(tensor::dtype_name(tensor.dtype))] += tensor.data.size();
    header.bytes += tensor.data.size();
  }
  const auto& quantization = hf.quantization();
  header.quantization = quantization
                            ? fmt::format("{}-bit {}", quantization->defaults.bits, quantization->defaults.mode)
                            : heaviest(bytes);
  return header;
}

}  // namespace

Result<ModelHeader> read_header(const ModelChoice& model) {
  std::error_code ignored;
  return fs::is_directory(model.path, ignored) ? folder_header(model.path) : gguf_header(model.path);
}

}  // namespace quern::app

// Fuzzer: any bytes as a safetensors file; whatever parses is read as plain, affine and mxfp4 weights.
#include <cstdint>
#include <string_view>

#include "quern/base/check.h"
#include "quern/formats/safetensors.h"
#include "quern/formats/weight_matrix.h"

namespace {

using quern::formats::HfQuantization;

void read_weights(const quern::formats::SafeTensors& file, const std::optional<HfQuantization>& quantization) {
  constexpr std::string_view kWeight = ".weight";
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.ends_with(kWeight)) continue;
    const auto module = std::string_view(name).substr(0, name.size() - kWeight.size());
    const auto matrix = weight_matrix(file, module, quantization);
    if (matrix) QUERN_CHECK(quern::tensor::check_matrix(*matrix).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file =
      quern::formats::SafeTensors::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzz.safetensors");
  if (!file) return 0;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    QUERN_CHECK(file->find(name) == &tensor);
    bytes += tensor.data.size();
    if (tensor.data.empty()) continue;
    volatile auto ends = tensor.data.front() ^ tensor.data.back();  // a bad span would end the run here
    static_cast<void>(ends);
  }
  QUERN_CHECK(bytes <= size);
  read_weights(*file, std::nullopt);
  for (const std::int64_t bits : {2, 3, 4, 5, 6, 8}) {
    read_weights(*file, HfQuantization{.defaults = {.bits = bits, .group = 32, .mode = "affine"}, .modules = {}});
  }
  read_weights(*file, HfQuantization{.defaults = {.bits = 4, .group = 32, .mode = "mxfp4"}, .modules = {}});
  return 0;
}

// Fuzzer: any bytes as a GGUF file; whatever parses is read through every accessor.
#include <cstdint>

#include "quern/base/check.h"
#include "quern/formats/gguf.h"

namespace {

using quern::formats::GgufArray;
using quern::formats::GgufFile;

void read_array(const GgufArray& array) {
  if (const auto strings = array.strings()) {
    QUERN_CHECK(strings->size() == array.count);
    for (const std::string_view text : *strings) QUERN_CHECK(text.size() <= array.bytes.size());
  }
  if (const auto integers = array.integers()) QUERN_CHECK(integers->size() == array.count);
  if (const auto numbers = array.numbers()) QUERN_CHECK(numbers->size() == array.count);
}

void read_tensors(const GgufFile& file) {
  for (const auto& tensor : file.tensors()) {
    QUERN_CHECK(file.find_tensor(tensor.name) == &tensor);
    QUERN_CHECK(quern::tensor::check_matrix(tensor.matrix()).has_value());
    volatile auto ends = tensor.data.front() ^ tensor.data.back();  // a bad span would end the run here
    static_cast<void>(ends);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = GgufFile::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzz.gguf");
  if (!file) return 0;
  for (const auto& [key, value] : file->metadata()) {
    static_cast<void>(file->integer(key));
    static_cast<void>(file->number(key));
    static_cast<void>(file->boolean(key));
    static_cast<void>(file->string(key));
    if (const auto array = file->array(key); array && *array) read_array(**array);
  }
  read_tensors(*file);
  return 0;
}

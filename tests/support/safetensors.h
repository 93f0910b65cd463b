// Writing safetensors in tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quern::test {

struct TensorBytes {
  std::string name;
  std::string dtype;  // "F32", "U32", ...
  std::vector<std::int64_t> shape;
  std::string data;
};

/// The bytes of a safetensors file that holds these tensors, one after the other.
[[nodiscard]] inline std::string safetensors(const std::vector<TensorBytes>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const TensorBytes& one : tensors) {
    const std::size_t begin = data.size();
    data += one.data;
    header[one.name] = {{"dtype", one.dtype}, {"shape", one.shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + text + data;
}

}  // namespace quern::test

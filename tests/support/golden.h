// Golden values of a model's steps, as the oracles store them, and how far a run is from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "quern/base/check.h"
#include "quern/formats/safetensors.h"
#include "quern/ops/device.h"

namespace quern::test {

inline const std::filesystem::path kModels = std::filesystem::path(QUERN_FIXTURES) / "models";

/// Folders under fixtures/models that hold a model and its golden values.
inline std::vector<std::string> twin_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
    if (std::filesystem::exists(entry.path() / "golden.safetensors")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

inline std::filesystem::path model_path(const std::string& twin) {
  const std::filesystem::path gguf = kModels / twin / "model.gguf";
  return std::filesystem::exists(gguf) ? gguf : kModels / twin;
}

/// Elements of a stored tensor, copied: the file aligns nothing.
template <class T>
std::vector<T> elements(const formats::SafeTensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::memcpy(values.data(), tensor.data.data(), values.size() * sizeof(T));
  return values;
}

using Values = std::map<std::string, std::vector<float>, std::less<>>;

struct Golden {
  std::vector<std::int32_t> tokens;
  Values values;
};

inline Golden read_golden(const std::string& twin) {
  const auto file = formats::SafeTensors::open(kModels / twin / "golden.safetensors");
  QUERN_CHECK(file.has_value());
  Golden golden;
  for (const auto& [name, tensor] : file->tensors()) {
    if (name == "tokens") {
      golden.tokens = elements<std::int32_t>(tensor);
    } else {
      golden.values[name] = elements<float>(tensor);
    }
  }
  return golden;
}

/// Largest difference over the largest expected magnitude. Infinity when the shapes differ or a value isn't a number.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  if (got.size() != expected.size() || expected.empty()) return INFINITY;
  double difference = 0.0;
  double largest = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{got[i]} - double{expected[i]}));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

/// Row-major copy of what an observer sees.
inline std::vector<float> copy(const ops::Mat& mat) {
  std::vector<float> values;
  for (std::int64_t r = 0; r < mat.rows; ++r) values.insert(values.end(), mat.row(r), mat.row(r) + mat.cols);
  return values;
}

}  // namespace quern::test

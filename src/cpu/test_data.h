// Random weights in every encoding, activations and KV pages for the tests of the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quern/ops/device.h"
#include "quern/tensor/dtype.h"
#include "quern/tensor/encoding.h"

namespace quern::cpu::test {

/// One way of keeping a weight, as check_matrix accepts it.
struct WeightKind {
  tensor::Encoding encoding = tensor::Encoding::kF32;
  int bits = 0;
  int group = 0;
  tensor::DType scale_dtype = tensor::DType::kF32;

  [[nodiscard]] std::string name() const {
    std::string name(tensor::encoding_name(encoding));
    if (bits != 0) name += "_" + std::to_string(bits) + "bit_group" + std::to_string(group);
    return name;
  }
  /// Columns come in multiples of this.
  [[nodiscard]] std::int64_t column_step() const {
    if (encoding == tensor::Encoding::kAffine) return std::lcm(group, 32);
    const auto form = tensor::affine_form({.encoding = encoding});
    if (!form) return 1;
    return encoding >= tensor::Encoding::kQ2K && encoding <= tensor::Encoding::kQ6K ? 256 : 32;
  }
};

inline std::vector<WeightKind> weight_kinds() {
  std::vector<WeightKind> kinds;
  for (int i = 0; i <= static_cast<int>(tensor::Encoding::kMxfp4); ++i) {
    const auto encoding = static_cast<tensor::Encoding>(i);
    if (encoding != tensor::Encoding::kAffine) kinds.push_back({.encoding = encoding});
  }
  const auto affine = [&](int bits, int group, tensor::DType dtype) {
    kinds.push_back({tensor::Encoding::kAffine, bits, group, dtype});
  };
  for (const int bits : {2, 3, 4, 5, 6, 8}) affine(bits, 64, tensor::DType::kBf16);
  affine(4, 16, tensor::DType::kF16);
  affine(4, 48, tensor::DType::kF32);
  affine(8, 128, tensor::DType::kF32);
  return kinds;
}

/// Random bits, but for the scales, which keep the weights near one.
struct RandomMatrix {
  tensor::MatrixView view;
  std::vector<std::byte> data, scales, biases;

  RandomMatrix(const WeightKind& kind, std::int64_t rows, std::int64_t cols, unsigned seed) : random_(seed) {
    view = {.encoding = kind.encoding,
            .rows = rows,
            .cols = cols,
            .bits = kind.bits,
            .group = kind.group,
            .scale_dtype = kind.scale_dtype};
    data.resize(static_cast<std::size_t>(rows) * view.row_bytes());
    for (std::byte& byte : data) byte = static_cast<std::byte>(random_() & 0xff);
    switch (kind.encoding) {
      case tensor::Encoding::kF32:
        fill_floats(data, tensor::DType::kF32, -1, 1);
        break;
      case tensor::Encoding::kF16:
        fill_floats(data, tensor::DType::kF16, -1, 1);
        break;
      case tensor::Encoding::kBf16:
        fill_floats(data, tensor::DType::kBf16, -1, 1);
        break;
      case tensor::Encoding::kQ4_0:
        set_block_scales(18, {0}, 0.1F);
        break;
      case tensor::Encoding::kQ4_1:
        set_block_scales(20, {0, 2}, 0.1F);
        break;
      case tensor::Encoding::kQ5_0:
        set_block_scales(22, {0}, 0.1F);
        break;
      case tensor::Encoding::kQ5_1:
        set_block_scales(24, {0, 2}, 0.1F);
        break;
      case tensor::Encoding::kQ8_0:
        set_block_scales(34, {0}, 0.01F);
        break;
      case tensor::Encoding::kQ2K:
        set_block_scales(84, {80, 82}, 0.03F);
        break;
      case tensor::Encoding::kQ3K:
        set_block_scales(110, {108}, 0.01F);
        break;
      case tensor::Encoding::kQ4K:
        set_block_scales(144, {0, 2}, 0.003F);
        break;
      case tensor::Encoding::kQ5K:
        set_block_scales(176, {0, 2}, 0.002F);
        break;
      case tensor::Encoding::kQ6K:
        set_block_scales(210, {208}, 0.0003F);
        break;
      case tensor::Encoding::kAffine: {
        const std::size_t bytes = static_cast<std::size_t>(rows * cols / kind.group) * dtype_bytes(kind.scale_dtype);
        scales.resize(bytes);
        biases.resize(bytes);
        const float step = 2.0F / static_cast<float>(1 << kind.bits);
        fill_floats(scales, kind.scale_dtype, 0.5F * step, step);
        fill_floats(biases, kind.scale_dtype, -1, -0.5F);
        break;
      }
      case tensor::Encoding::kMxfp4:
        scales.resize(static_cast<std::size_t>(rows * cols / 32));
        for (std::byte& byte : scales) byte = static_cast<std::byte>(123 + random_() % 4);
        break;
    }
    view.data = data;
    view.scales = scales;
    view.biases = biases;
  }
  RandomMatrix(const RandomMatrix&) = delete;
  RandomMatrix& operator=(const RandomMatrix&) = delete;

  [[nodiscard]] ops::WeightPart part() const { return {.view = view}; }

 private:
  static void write(std::byte* at, tensor::DType dtype, float value) {
    if (dtype == tensor::DType::kF32) {
      std::memcpy(at, &value, 4);
      return;
    }
    const std::uint16_t half = dtype == tensor::DType::kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
    std::memcpy(at, &half, 2);
  }
  void fill_floats(std::vector<std::byte>& bytes, tensor::DType dtype, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    for (std::size_t i = 0; i < bytes.size(); i += dtype_bytes(dtype)) write(bytes.data() + i, dtype, uniform(random_));
  }
  void set_block_scales(std::size_t block_bytes, std::initializer_list<std::size_t> offsets, float size) {
    std::uniform_real_distribution<float> uniform(-size, size);
    for (std::size_t block = 0; block < data.size(); block += block_bytes) {
      for (const std::size_t offset : offsets) write(&data[block + offset], tensor::DType::kF16, uniform(random_));
    }
  }

  std::mt19937 random_;
};

/// Activations whose rows start at odd places: one float past an alignment, three floats apart.
struct Activations {
  std::vector<float> values;
  ops::Mat mat;

  Activations(std::int64_t rows, std::int64_t cols, unsigned seed = 0) {
    const std::int64_t stride = cols + 3;
    values.assign(static_cast<std::size_t>(rows * stride + 1), -1234.5F);
    mat = {.data = values.data() + 1, .rows = rows, .cols = cols, .stride = stride};
    if (seed == 0) return;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) mat.row(r)[c] = normal(random);
    }
  }
  Activations(const Activations& other) : values(other.values), mat(other.mat) { mat.data = values.data() + 1; }
  Activations& operator=(const Activations&) = delete;

  [[nodiscard]] ops::Mat rows(std::int64_t first, std::int64_t count) const {
    return {.data = mat.row(first), .rows = count, .cols = mat.cols, .stride = mat.stride};
  }
  /// Rounds to what f16 holds.
  void round_to_f16() {
    for (float& value : values) value = tensor::f16_to_f32(tensor::f32_to_f16(value));
  }
  [[nodiscard]] bool same_bits(const Activations& other) const {
    return values.size() == other.values.size() &&
           std::memcmp(values.data(), other.values.data(), values.size() * sizeof(float)) == 0;
  }
};

/// The KV pages of one layer, every element not-a-number until stored.
struct Pages {
  std::vector<std::byte> keys, values;
  ops::KvLayer layer;

  Pages(const ops::Device& device, std::int32_t pages, const ops::AttentionShape& shape) {
    const auto elements = static_cast<std::size_t>(pages * shape.kv_heads * ops::kPageTokens * shape.head_dim);
    keys.assign(elements * dtype_bytes(device.kv_dtype()), std::byte{0xff});
    values = keys;
    layer = {.keys = keys.data(),
             .values = values.data(),
             .dtype = device.kv_dtype(),
             .pages = pages,
             .kv_heads = shape.kv_heads,
             .head_dim = shape.head_dim};
  }
};

/// A batch of sequences, each `held` positions long already and `tokens` longer now, over shuffled pages.
struct Sequences {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<std::int32_t>> pages;
  std::vector<ops::BatchRow> rows;
  std::int32_t page_count = 0;

  struct Row {
    std::int32_t held;
    std::int32_t tokens;
  };
  explicit Sequences(const std::vector<Row>& of, unsigned seed = 1) {
    for (const Row& row : of) page_count += (row.held + row.tokens + ops::kPageTokens - 1) / ops::kPageTokens;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(page_count));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(seed));
    auto next = ids.begin();
    for (const Row& row : of) {
      const auto first = static_cast<std::int32_t>(tokens.size());
      tokens.resize(tokens.size() + static_cast<std::size_t>(row.tokens));
      const auto count = (row.held + row.tokens + ops::kPageTokens - 1) / ops::kPageTokens;
      pages.emplace_back(next, next + count);
      next += count;
      rows.push_back({.first_token = first, .tokens = row.tokens, .first_position = row.held, .pages = {}});
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].pages = pages[i];
  }
  [[nodiscard]] ops::Batch batch() const { return {.tokens = tokens, .rows = rows, .outputs = {}}; }
};

}  // namespace quern::cpu::test

// synthetic: models: random weights from a seed, made tensor by tensor when the loader asks.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "quern/base/check.h"
#include "quern/model/config_check.h"
#include "quern/model/tensor_source.h"
#include "quern/tensor/buffer.h"

namespace quern::model {
namespace {

constexpr std::string_view kPrefix = "synthetic:";
/// All shapes have the starter's vocabulary, so that its tokenizer serves them.
constexpr std::int32_t kVocab = 49152;

struct Shape {
  std::string_view name;
  std::int32_t layers, hidden, feed_forward, heads, kv_heads, head_dim;
  double rope_theta;
  bool tied;
};
constexpr std::array kShapes = {
    Shape{"tiny", 2, 64, 192, 4, 2, 16, 10000.0, true},
    Shape{"llama-135m", 30, 576, 1536, 9, 3, 64, 100000.0, true},
    Shape{"llama-360m", 32, 960, 2560, 15, 5, 64, 100000.0, true},
    Shape{"llama-1b", 16, 2048, 8192, 32, 8, 64, 500000.0, true},
    Shape{"llama-3b", 28, 3072, 8192, 24, 8, 128, 500000.0, true},
    Shape{"llama-8b", 32, 4096, 14336, 32, 8, 128, 500000.0, false},
};

const Shape* find_shape(std::string_view name) {
  const auto* found = std::ranges::find(kShapes, name, &Shape::name);
  return found == kShapes.end() ? nullptr : found;
}

template <class T>
Result<T> parse_number(std::string_view key, std::string_view text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) return value;
  return fail(ErrorCode::kInvalidRequest, "synthetic model: {} is '{}', expected a number from {} to {}", key, text,
              low, high);
}

template <class T>
Result<T> parse_choice(std::string_view key, std::string_view text, std::span<const T> choices) {
  QUERN_ASSIGN(const T value, parse_number<T>(key, text, choices.front(), choices.back()));
  if (std::ranges::find(choices, value) != choices.end()) return value;
  return fail(ErrorCode::kInvalidRequest, "synthetic model: {} is {}, expected one of {}", key, value,
              fmt::join(choices, ", "));
}

Result<void> parse_option(std::string_view key, std::string_view value, SyntheticSpec& spec) {
  constexpr std::array bits = {2, 3, 4, 5, 6, 8, 16, 32};
  constexpr std::array groups = {16, 32, 64, 128};
  if (key == "ctx") {
    QUERN_ASSIGN(spec.context, (parse_number<std::int64_t>(key, value, 1, kMaxContext)));
  } else if (key == "bits") {
    QUERN_ASSIGN(spec.bits, parse_choice<int>(key, value, bits));
  } else if (key == "group") {
    QUERN_ASSIGN(spec.group, parse_choice<int>(key, value, groups));
  } else if (key == "seed") {
    QUERN_ASSIGN(spec.seed, (parse_number<std::uint64_t>(key, value, 0, UINT64_MAX)));
  } else {
    return fail(ErrorCode::kInvalidRequest, "synthetic model: '{}' isn't known (known: ctx, bits, group, seed)", key);
  }
  return {};
}

/// splitmix64: a stream of 64-bit values that a seed names.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// Uniform in [-1, 1).
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-23F - 1.0F; }

 private:
  std::uint64_t state_;
};

std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t value = 0xcbf29ce484222325U ^ Random(seed).next();
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return value;
}

/// Bytes of one made matrix; the view points into them.
struct Made {
  tensor::Buffer<std::byte> data;
  tensor::Buffer<std::byte> scales;
  tensor::Buffer<std::byte> biases;
};

tensor::Buffer<std::byte> raw(std::int64_t bytes) {
  return tensor::Buffer<std::byte>(static_cast<std::size_t>(bytes), tensor::Buffer<std::byte>::Fill::kNone);
}

template <class T>
void put(tensor::Buffer<std::byte>& buffer, std::int64_t index, T value) {
  std::memcpy(buffer.data() + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

/// Uniform codes: with scale s their values spread by s * 2^bits / sqrt(12). `deviation` is what is wanted of them.
std::shared_ptr<Made> make_affine(Random& random, float deviation, tensor::MatrixView& view) {
  auto made = std::make_shared<Made>();
  const std::int64_t code_bytes = view.rows * view.cols * view.bits / 8;
  const std::int64_t groups = view.rows * view.cols / view.group;
  made->data = raw((code_bytes + 7) / 8 * 8);
  made->scales = raw(groups * 2);
  made->biases = raw(groups * 2);
  for (std::int64_t i = 0; i < code_bytes; i += 8) put(made->data, i / 8, random.next());
  const auto levels = static_cast<float>(1 << view.bits);
  const float scale = deviation * std::sqrt(12.0F) / levels;
  for (std::int64_t i = 0; i < groups; ++i) {
    const float own = scale * (1.0F + 0.25F * random.uniform());
    put(made->scales, i, tensor::f32_to_f16(own));
    put(made->biases, i, tensor::f32_to_f16(-own * (levels - 1.0F) / 2.0F));
  }
  view.data = made->data.span().first(static_cast<std::size_t>(code_bytes));
  view.scales = made->scales.span();
  view.biases = made->biases.span();
  return made;
}

std::shared_ptr<Made> make_floats(Random& random, float deviation, tensor::MatrixView& view) {
  auto made = std::make_shared<Made>();
  const bool wide = view.encoding == tensor::Encoding::kF32;
  const std::int64_t count = view.rows * view.cols;
  made->data = raw(count * (wide ? 4 : 2));
  const float reach = deviation * std::sqrt(3.0F);
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = reach * random.uniform();
    if (wide) {
      put(made->data, i, value);
    } else {
      put(made->data, i, tensor::f32_to_bf16(value));
    }
  }
  view.data = made->data.span();
  return made;
}

class SyntheticSource final : public TensorSource {
 public:
  SyntheticSource(SyntheticSpec spec, std::int32_t layers) : spec_(std::move(spec)), layers_(layers) {}

  Result<SourceMatrix> matrix(std::string_view module, std::int64_t rows, std::int64_t cols) override {
    Random random(hash(module, spec_.seed));
    // A product of normalized inputs keeps its size; what is added to the residual stream grows slowly with depth.
    float deviation = 1.0F / std::sqrt(static_cast<float>(cols));
    if (module.ends_with("o_proj") || module.ends_with("down_proj")) {
      deviation /= std::sqrt(2.0F * static_cast<float>(layers_));
    }
    SourceMatrix matrix{.view = {.rows = rows, .cols = cols}, .row_order = {}, .lease = {}};
    if (spec_.bits >= 16) {
      matrix.view.encoding = spec_.bits == 32 ? tensor::Encoding::kF32 : tensor::Encoding::kBf16;
      matrix.lease = make_floats(random, deviation, matrix.view);
      return matrix;
    }
    matrix.view.encoding = tensor::Encoding::kAffine;
    matrix.view.bits = spec_.bits;
    matrix.view.group = spec_.group;
    while (matrix.view.group > 16 && cols % matrix.view.group != 0) matrix.view.group /= 2;  // 576 by 128: 64
    matrix.view.scale_dtype = tensor::DType::kF16;
    matrix.lease = make_affine(random, deviation, matrix.view);
    return matrix;
  }

  Result<std::vector<float>> vector(std::string_view, std::int64_t size) override {
    return std::vector<float>(static_cast<std::size_t>(size), 1.0F);
  }
  Result<void> check_all_used() const override { return {}; }

 private:
  SyntheticSpec spec_;
  std::int32_t layers_;
};

}  // namespace

bool is_synthetic(std::string_view name) {
  return name.starts_with(kPrefix);
}

std::vector<std::string_view> synthetic_shapes() {
  std::vector<std::string_view> names;
  for (const Shape& shape : kShapes) names.push_back(shape.name);
  return names;
}

Result<SyntheticSpec> parse_synthetic(std::string_view name) {
  QUERN_CHECK(is_synthetic(name));
  const std::string_view rest = name.substr(kPrefix.size());
  const std::size_t mark = rest.find('?');
  SyntheticSpec spec;
  spec.shape = rest.substr(0, mark);
  if (find_shape(spec.shape) == nullptr) {
    return fail(ErrorCode::kInvalidRequest, "synthetic model: shape '{}' isn't known (known: {})", spec.shape,
                fmt::join(synthetic_shapes(), ", "));
  }
  std::string_view options = mark == std::string_view::npos ? "" : rest.substr(mark + 1);
  while (!options.empty()) {
    const std::string_view option = options.substr(0, options.find('&'));
    options.remove_prefix(std::min(options.size(), option.size() + 1));
    const std::size_t equals = option.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kInvalidRequest, "synthetic model: '{}' isn't key=value", option);
    }
    QUERN_TRY(parse_option(option.substr(0, equals), option.substr(equals + 1), spec));
  }
  return spec;
}

ModelConfig synthetic_config(const SyntheticSpec& spec) {
  const Shape* shape = find_shape(spec.shape);
  QUERN_CHECK(shape != nullptr);
  ModelConfig config;
  config.architecture = "llama";
  config.layers = shape->layers;
  config.hidden = shape->hidden;
  config.feed_forward = shape->feed_forward;
  config.heads = shape->heads;
  config.kv_heads = shape->kv_heads;
  config.head_dim = shape->head_dim;
  config.rotary_dim = shape->head_dim;
  config.vocab = kVocab;
  config.context = spec.context;
  config.rope_theta = shape->rope_theta;
  config.tied_embeddings = shape->tied;
  auto checked = checked_config(std::move(config), spec.shape);
  QUERN_CHECK(checked.has_value());
  return std::move(checked).value();
}

std::unique_ptr<TensorSource> make_synthetic_source(const SyntheticSpec& spec, const ModelConfig& config) {
  return std::make_unique<SyntheticSource>(spec, config.layers);
}

}  // namespace quern::model

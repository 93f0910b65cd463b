// weight_matrix().
#include "quern/formats/weight_matrix.h"

#include <fmt/ranges.h>

#include "quern/formats/printable.h"

namespace quern::formats {
namespace {

// A tensor with what its messages need.
struct Named {
  const SafeTensors& file;
  std::string name;
  const SafeTensor& tensor;

  [[nodiscard]] std::unexpected<Error> error(ErrorCode code, std::string_view what) const {
    return fail(code, "{}: {} at byte {}: {}", file.file_name(tensor), printable(name), tensor.offset, what);
  }
  [[nodiscard]] std::unexpected<Error> invalid(std::string_view what) const {
    return error(ErrorCode::kInvalidFile, what);
  }
};

bool is_float(tensor::DType dtype) {
  return dtype == tensor::DType::kF32 || dtype == tensor::DType::kF16 || dtype == tensor::DType::kBf16;
}

Result<Named> require(const SafeTensors& tensors, std::string_view module, std::string_view part) {
  std::string name = fmt::format("{}.{}", module, part);
  const SafeTensor* const tensor = tensors.find(name);
  if (tensor == nullptr)
    return fail(ErrorCode::kInvalidFile, "{}: there is no tensor {}", tensors.name(), printable(name));
  return Named{tensors, std::move(name), *tensor};
}

// Rows and the last dimension. The parser proved that the product fits.
Result<std::pair<std::int64_t, std::int64_t>> fold(const Named& at) {
  if (at.tensor.shape.empty()) return at.invalid("a scalar, expected rows and columns");
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < at.tensor.shape.size(); ++i) {
    if (at.tensor.shape[i] == 0) return at.invalid(fmt::format("dimension {} is 0", i));
    if (i + 1 < at.tensor.shape.size()) rows *= at.tensor.shape[i];
  }
  return std::pair(rows, at.tensor.shape.back());
}

// The shape that a quantized weight's scales and biases must have.
Result<void> check_groups(const Named& at, const Named& weight, std::int64_t groups) {
  std::vector<std::int64_t> wanted = weight.tensor.shape;
  wanted.back() = groups;
  if (at.tensor.shape == wanted) return {};
  return at.invalid(
      fmt::format("shape [{}], expected [{}]", fmt::join(at.tensor.shape, ", "), fmt::join(wanted, ", ")));
}

Result<tensor::MatrixView> float_matrix(const Named& weight) {
  const auto encoding = tensor::float_encoding(weight.tensor.dtype);
  if (!encoding) {
    return weight.error(ErrorCode::kUnsupportedFormat,
                        fmt::format("a weight of dtype {}", tensor::dtype_name(weight.tensor.dtype)));
  }
  tensor::MatrixView view{.encoding = *encoding};
  QUERN_ASSIGN(std::tie(view.rows, view.cols), fold(weight));
  view.data = weight.tensor.data;
  return view;
}

Result<tensor::MatrixView> quantized_matrix(const Named& weight, const Named& scales,
                                            const HfQuantization::Module& quantized) {
  if (weight.tensor.dtype != tensor::DType::kU32) {
    return weight.invalid(
        fmt::format("dtype {}, but quantized weights are U32", tensor::dtype_name(weight.tensor.dtype)));
  }
  tensor::MatrixView view{.data = weight.tensor.data, .scales = scales.tensor.data};
  std::int64_t words = 0;
  QUERN_ASSIGN(std::tie(view.rows, words), fold(weight));
  // The words lie in the file, so that their bits can be counted in 64 of them.
  if (words * 32 % quantized.bits != 0) {
    return weight.invalid(fmt::format("rows of {} words don't hold whole codes of {} bits", words, quantized.bits));
  }
  view.cols = words * 32 / quantized.bits;
  if (view.cols % quantized.group != 0) {
    return weight.invalid(fmt::format("groups of {} don't divide {} columns", quantized.group, view.cols));
  }
  QUERN_TRY(check_groups(scales, weight, view.cols / quantized.group));
  if (quantized.mode == "mxfp4") {
    if (scales.tensor.dtype != tensor::DType::kU8) {
      return scales.invalid(fmt::format("dtype {}, but mxfp4 has U8 scales", tensor::dtype_name(scales.tensor.dtype)));
    }
    view.encoding = tensor::Encoding::kMxfp4;
    return view;
  }
  if (!is_float(scales.tensor.dtype)) {
    return scales.invalid(fmt::format("dtype {}, expected F32, F16 or BF16", tensor::dtype_name(scales.tensor.dtype)));
  }
  view.encoding = tensor::Encoding::kAffine;
  view.bits = static_cast<int>(quantized.bits);
  view.group = static_cast<int>(quantized.group);
  view.scale_dtype = scales.tensor.dtype;
  return view;
}

}  // namespace

Result<tensor::MatrixView> weight_matrix(const SafeTensors& tensors, std::string_view module,
                                         const std::optional<HfQuantization>& quantization) {
  QUERN_ASSIGN(const auto weight, require(tensors, module, "weight"));
  tensor::MatrixView view;
  if (tensors.find(fmt::format("{}.scales", module)) == nullptr) {
    QUERN_ASSIGN(view, float_matrix(weight));
  } else {
    QUERN_ASSIGN(const auto scales, require(tensors, module, "scales"));
    if (!quantization) return scales.invalid("a quantized module, but config.json has no quantization");
    const auto found = quantization->modules.find(module);
    const HfQuantization::Module& quantized =
        found == quantization->modules.end() ? quantization->defaults : found->second;
    if (quantized.bits == 0) return scales.invalid("config.json says that this module isn't quantized");
    QUERN_ASSIGN(view, quantized_matrix(weight, scales, quantized));
    if (view.encoding == tensor::Encoding::kAffine) {
      QUERN_ASSIGN(const auto biases, require(tensors, module, "biases"));
      QUERN_TRY(check_groups(biases, weight, view.cols / view.group));
      if (biases.tensor.dtype != view.scale_dtype) {
        return biases.invalid(fmt::format("dtype {}, but the scales are {}", tensor::dtype_name(biases.tensor.dtype),
                                          tensor::dtype_name(view.scale_dtype)));
      }
      view.biases = biases.tensor.data;
    } else if (const SafeTensor* const biases = tensors.find(fmt::format("{}.biases", module)); biases != nullptr) {
      return Named{tensors, fmt::format("{}.biases", module), *biases}.invalid("mxfp4 has no biases");
    }
  }
  if (const auto checked = tensor::check_matrix(view); !checked) return weight.invalid(checked.error().message);
  return view;
}

}  // namespace quern::formats

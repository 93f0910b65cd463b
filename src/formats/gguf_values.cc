// Reading a parsed GGUF file: typed look-ups, arrays, tensors as matrices.
#include <cmath>

#include "quern/formats/byte_reader.h"
#include "quern/formats/gguf.h"
#include "quern/formats/gguf_types.h"
#include "quern/formats/printable.h"

namespace quern::formats {
namespace {

std::string_view kind_name(const GgufValue& value) {
  constexpr std::array<std::string_view, 6> kNames = {"an unsigned integer", "a signed integer", "a float",
                                                      "a boolean",           "a string",         "an array"};
  return kNames[value.index()];
}

std::unexpected<Error> wrong_elements(const GgufArray& array, std::string_view what) {
  return fail(ErrorCode::kInvalidFile, "{}: metadata {} at byte {}: an array of {}, expected {}", array.file,
              printable(array.key), array.offset, gguf_value_type(array.wire_type)->name, what);
}

// Calls `add` with each element's address.
template <class Add>
void each_element(const GgufArray& array, Add add) {
  const std::size_t size = gguf_value_type(array.wire_type)->min_bytes;
  for (std::size_t at = 0; at < array.bytes.size(); at += size) add(array.bytes.data() + at);
}

}  // namespace

Result<std::vector<std::string_view>> GgufArray::strings() const {
  if (element != Element::kString) return wrong_elements(*this, "strings");
  std::vector<std::string_view> out;
  out.reserve(count);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::size_t>(load<std::uint64_t>(bytes.data() + at));
    at += sizeof(std::uint64_t);
    out.emplace_back(reinterpret_cast<const char*>(bytes.data() + at), length);
    at += length;
  }
  return out;
}

Result<std::vector<std::int64_t>> GgufArray::integers() const {
  if (element != Element::kUnsigned && element != Element::kSigned) return wrong_elements(*this, "integers");
  const GgufValueType& type = *gguf_value_type(wire_type);
  std::vector<std::int64_t> out;
  out.reserve(count);
  bool fits = true;
  each_element(*this, [&](const std::byte* at) {
    if (element == Element::kSigned) {
      out.push_back(gguf_signed(type, at));
    } else {
      const std::uint64_t value = gguf_unsigned(type, at);
      fits = fits && value <= static_cast<std::uint64_t>(INT64_MAX);
      out.push_back(static_cast<std::int64_t>(value));
    }
  });
  if (!fits) return wrong_elements(*this, "integers below 2^63");
  return out;
}

Result<std::vector<double>> GgufArray::numbers() const {
  const GgufValueType& type = *gguf_value_type(wire_type);
  std::vector<double> out;
  switch (element) {
    case Element::kFloat: {
      out.reserve(count);
      bool finite = true;
      each_element(*this, [&](const std::byte* at) {
        out.push_back(gguf_float(type, at));
        finite = finite && std::isfinite(out.back());
      });
      if (!finite) return wrong_elements(*this, "finite numbers");
      return out;
    }
    case Element::kUnsigned:
    case Element::kSigned: {
      QUERN_ASSIGN(const auto whole, integers());
      out.assign(whole.begin(), whole.end());
      return out;
    }
    default:
      return wrong_elements(*this, "numbers");
  }
}

tensor::MatrixView GgufTensor::matrix() const {
  tensor::MatrixView view;
  view.encoding = encoding;
  view.cols = shape.back();
  view.rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) view.rows *= shape[i];
  view.data = data;
  return view;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::unexpected<Error> GgufFile::wrong(std::string_view key, std::string_view what, ErrorCode code) const {
  const auto stored = metadata_.find(key)->first;  // this one points into the file
  return fail(code, "{}: metadata {} at byte {}: {}", *name_, printable(key),
              reinterpret_cast<const std::byte*>(stored.data()) - bytes_.data(), what);
}

Result<std::optional<std::int64_t>> GgufFile::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto range = [&](auto found) {
    return wrong(key, fmt::format("expected an integer from {} to {}, found {}", low, high, found));
  };
  if (const auto* const number = std::get_if<std::uint64_t>(value)) {
    if (*number > static_cast<std::uint64_t>(INT64_MAX)) return range(*number);
    const auto converted = static_cast<std::int64_t>(*number);
    if (converted < low || converted > high) return range(converted);
    return converted;
  }
  if (const auto* const number = std::get_if<std::int64_t>(value)) {
    if (*number < low || *number > high) return range(*number);
    return *number;
  }
  return wrong(key, fmt::format("expected an integer, found {}", kind_name(*value)));
}

Result<std::optional<double>> GgufFile::number(std::string_view key, double low, double high) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  double number = 0.0;
  if (const auto* const real = std::get_if<double>(value)) {
    number = *real;
  } else {
    if (!std::holds_alternative<std::uint64_t>(*value) && !std::holds_alternative<std::int64_t>(*value)) {
      return wrong(key, fmt::format("expected a number, found {}", kind_name(*value)));
    }
    QUERN_ASSIGN(const auto whole, integer(key));
    number = static_cast<double>(*whole);
  }
  if (!(number >= low && number <= high)) {
    return wrong(key, fmt::format("expected a number from {} to {}, found {}", low, high, number));
  }
  return number;
}

Result<std::optional<bool>> GgufFile::boolean(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const flag = std::get_if<bool>(value)) return *flag;
  return wrong(key, fmt::format("expected a boolean, found {}", kind_name(*value)));
}

Result<std::optional<std::string_view>> GgufFile::string(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const text = std::get_if<std::string_view>(value)) return *text;
  return wrong(key, fmt::format("expected a string, found {}", kind_name(*value)));
}

Result<std::optional<GgufArray>> GgufFile::array(std::string_view key) const {
  const GgufValue* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const array = std::get_if<GgufArray>(value)) return *array;
  return wrong(key, fmt::format("expected an array, found {}", kind_name(*value)));
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void GgufFile::drop_pages(const GgufTensor& tensor) const {
  if (map_ != nullptr) map_->drop(tensor.data);
}

}  // namespace quern::formats

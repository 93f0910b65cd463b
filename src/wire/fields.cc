// Typed reading of JSON members.
#include "quern/wire/internal/fields.h"

#include <cmath>
#include <utility>

namespace quern::wire {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

}  // namespace

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::object:
      return "an object";
    default:
      return value.dump();
  }
}

Error wrong_value(std::string path, std::string_view expected, const Json& got) {
  std::string message = fmt::format("'{}': expected {}, got {}", path, expected, describe(got));
  return {ErrorCode::kInvalidRequest, std::move(message), std::move(path)};
}

std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (std::trunc(number) != number || number < -kTwoTo63 || number >= kTwoTo63) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

const Json* Fields::find(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> Fields::whole(std::string_view name, std::int64_t min, std::int64_t max) {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = whole_number(*value);
  if (number && *number >= min && *number <= max) return number;
  refuse(name, fmt::format("an integer from {} to {}", min, max), *value);
  return std::nullopt;
}

void Fields::seed(std::string_view name, std::optional<std::uint64_t>& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (value->is_number_unsigned()) {
    out = value->get<std::uint64_t>();
  } else if (const auto number = whole_number(*value)) {
    out = static_cast<std::uint64_t>(*number);
  } else if (const double wide = value->is_number_float() ? value->get<double>() : 0.0;
             wide >= kTwoTo63 && wide < 2 * kTwoTo63) {
    out = static_cast<std::uint64_t>(wide);
  } else {
    refuse(name, "an integer of 64 bits", *value);
  }
}

void Fields::number(std::string_view name, double min, double max, float& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= min && number <= max) {
      out = static_cast<float>(number);
      return;
    }
  }
  refuse(name, fmt::format("a number from {:g} to {:g}", min, max), *value);
}

void Fields::boolean(std::string_view name, bool& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return refuse(name, "true or false", *value);
  out = value->get<bool>();
}

void Fields::string(std::string_view name, std::string& out) {
  const Json* value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return refuse(name, "a string", *value);
  out = value->get_ref<const std::string&>();
}

const Json* Fields::object(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_object()) return value;
  refuse(name, "an object", *value);
  return nullptr;
}

const Json* Fields::array(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_array()) return value;
  refuse(name, "an array", *value);
  return nullptr;
}

void Fields::refuse(std::string_view name, std::string_view expected, const Json& got) {
  report(wrong_value(fmt::format("{}{}", prefix_, name), expected, got));
}

void Fields::report(Error error) {
  if (!error_) error_ = std::move(error);
}

void Fields::unsupported(std::string_view name, std::string_view what) {
  std::string path = fmt::format("{}{}", prefix_, name);
  std::string message = fmt::format("'{}': {} is not implemented", path, what);
  report({ErrorCode::kNotImplemented, std::move(message), std::move(path)});
}

Result<void> Fields::check() const {
  if (error_) return fail(*error_);
  return {};
}

}  // namespace quern::wire

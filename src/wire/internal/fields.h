// Fields: the typed reading of a JSON object, with errors that name the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "quern/wire/internal/json.h"

namespace quern::wire {

/// Reads the members of one object. A reader leaves `out` as it was when the member is absent or null. The first member
/// of a wrong type or range is kept as the error, and reading goes on: ask `check` at the end. An integer is any whole
/// number, however it is written; booleans and strings are no numbers. The object must outlive it.
class Fields {
 public:
  /// `prefix` is put before each name in errors: "stream_options.".
  explicit Fields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

  /// Nothing when absent or null.
  [[nodiscard]] const Json* find(std::string_view name) const;

  template <class Integer>
  void integer(std::string_view name, std::int64_t min, std::int64_t max, Integer& out) {
    if (const auto value = whole(name, min, max)) out = static_cast<Integer>(*value);
  }
  /// Any 64 bits: from -2^63 to 2^64 - 1.
  void seed(std::string_view name, std::optional<std::uint64_t>& out);
  void number(std::string_view name, double min, double max, float& out);
  void boolean(std::string_view name, bool& out);
  void string(std::string_view name, std::string& out);
  /// The member when it is an object or array; another type is an error.
  [[nodiscard]] const Json* object(std::string_view name);
  [[nodiscard]] const Json* array(std::string_view name);

  /// Reports a field: "'name': expected a number, got a string". Only the first report of all counts.
  void refuse(std::string_view name, std::string_view expected, const Json& got);
  void report(Error error);
  /// A field that asks for what isn't there.
  void unsupported(std::string_view name, std::string_view what);
  [[nodiscard]] Result<void> check() const;

 private:
  [[nodiscard]] std::optional<std::int64_t> whole(std::string_view name, std::int64_t min, std::int64_t max);

  const Json& object_;
  std::string prefix_;
  std::optional<Error> error_;
};

/// "a string", "true", "12": what an error may say about a value without repeating text.
[[nodiscard]] std::string describe(const Json& value);
/// The error of a value at `path` that isn't what was expected.
[[nodiscard]] Error wrong_value(std::string path, std::string_view expected, const Json& got);
/// The value as a whole number of 64 bits, if it is one.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Json& value);

}  // namespace quern::wire

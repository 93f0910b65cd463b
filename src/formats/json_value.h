// JSON from untrusted files: values that know their offset, and fields that check type and range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quern/base/result.h"

namespace quern::formats {

struct JsonValue {
  using List = std::vector<JsonValue>;
  using Object = std::map<std::string, JsonValue, std::less<>>;
  /// Integers that don't fit into 64 signed bits are doubles; doubles are finite.
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, List, Object> content;
  std::size_t offset = 0;  // of its first byte in the file
};

/// What a text may hold at most. A value takes at most some 200 bytes beside its own text, so `values` bounds memory.
struct JsonLimits {
  std::size_t bytes = std::size_t{16} << 20;
  std::size_t depth = 32;
  std::size_t values = 1'000'000;
};

/// UTF-8 JSON without comments, which stands at `text_offset` of the file. kInvalidFile with file and offset: what
/// isn't JSON, a key given twice, a limit exceeded.
[[nodiscard]] Result<JsonValue> parse_json(std::string_view text, std::string_view file, const JsonLimits& limits = {},
                                           std::size_t text_offset = 0);

/// A value with its way from the root, so that errors name file, field and offset. Borrows the value and the file's
/// name.
class JsonField {
 public:
  JsonField(const JsonValue& root, std::string_view file) : value_(&root), file_(file) {}

  [[nodiscard]] const JsonValue& value() const { return *value_; }

  /// A member of this object: nothing when it is absent or null. kInvalidFile when this isn't an object.
  [[nodiscard]] Result<std::optional<JsonField>> find(std::string_view key) const;
  /// The same, where absent is an error.
  [[nodiscard]] Result<JsonField> at(std::string_view key) const;
  /// The elements of this list; more than `most` are kInvalidFile.
  [[nodiscard]] Result<std::vector<JsonField>> list(std::size_t most) const;
  /// The members of this object, in the order of their names; null ones too.
  [[nodiscard]] Result<std::vector<std::pair<std::string_view, JsonField>>> members() const;

  /// kInvalidFile when of another type or outside [low, high]. A float without a fraction is an integer too.
  [[nodiscard]] Result<std::int64_t> integer(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] Result<double> number(double low, double high) const;
  [[nodiscard]] Result<bool> boolean() const;
  [[nodiscard]] Result<std::string_view> string() const;

  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(value_->content);
  }

  /// The error that stands at this value.
  [[nodiscard]] std::unexpected<Error> error(ErrorCode code, std::string_view what) const;
  [[nodiscard]] std::unexpected<Error> invalid(std::string_view what) const {
    return error(ErrorCode::kInvalidFile, what);
  }

 private:
  [[nodiscard]] JsonField child(const JsonValue& value, std::string_view key) const;
  [[nodiscard]] std::unexpected<Error> expected(std::string_view what) const;

  const JsonValue* value_;
  std::string_view file_;
  std::string path_;
};

}  // namespace quern::formats

// parse_json over nlohmann's SAX parser, and JsonField.
#include "quern/formats/json_value.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "quern/formats/printable.h"

namespace quern::formats {
namespace {

// Input for the lexer that tells how far it has read.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** read_to;

  reference operator*() const { return *at; }
  Cursor& operator++() {
    *read_to = ++at;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
  bool operator!=(const Cursor& other) const { return at != other.at; }
};

// Builds the values from the lexer's events; returning false ends the parse.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(std::string_view text, const JsonLimits& limits, std::size_t text_offset)
      : text_(text), limits_(limits), text_offset_(text_offset), read_to_(text.data()), done_(text.data()) {}

  [[nodiscard]] Cursor begin() { return {read_to_, &read_to_}; }  // before anything was read
  [[nodiscard]] Cursor end() { return {text_.data() + text_.size(), &read_to_}; }
  [[nodiscard]] JsonValue& root() { return root_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::size_t problem_offset() const { return problem_offset_; }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add_number(value); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return add_number(static_cast<double>(value));
    return add_number(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) { return add_number(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t&) { return false; }  // not in JSON text

  bool start_object(std::size_t) { return open(JsonValue::Object{}); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(JsonValue::List{}); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    const std::size_t offset = token_start();
    done_ = read_to_;
    auto& object = std::get<JsonValue::Object>(open_.back()->content);
    const auto [place, added] = object.try_emplace(std::move(name));
    if (!added) return refuse(offset, fmt::format("the key {} is given twice", printable(place->first)));
    member_ = &place->second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    std::string what = error.what();  // "[json.exception.parse_error.101] parse error at ...: ... last read: ..."
    if (const auto id = what.find("] "); id != std::string::npos) what.erase(0, id + 2);
    what.resize(std::min(what.size(), std::size_t{200}));
    std::ranges::replace_if(what, [](char c) { return c < ' ' || c > '~'; }, '?');
    return refuse(text_offset_ + (position == 0 ? 0 : position - 1), fmt::format("not JSON: {}", what));
  }

 private:
  // The lexer reports a token once it has read it; the token begins after what separates it from the one before.
  [[nodiscard]] std::size_t token_start() const {
    const char* at = done_;
    while (at < read_to_ && std::string_view(" \t\r\n,:").find(*at) != std::string_view::npos) ++at;
    return text_offset_ + static_cast<std::size_t>(at - text_.data());
  }

  bool refuse(std::size_t offset, std::string what) {
    problem_offset_ = offset;
    problem_ = std::move(what);
    return false;
  }

  template <class T>
  bool add(T value) {
    return place(std::move(value)) != nullptr;
  }

  template <class T>
  bool add_number(T value) {
    const bool added = add(value);
    // A number ends where another character is seen, which was read but belongs to the next token.
    if (done_ != text_.data() + text_.size()) --done_;
    return added;
  }

  template <class T>
  bool open(T value) {
    if (open_.size() >= limits_.depth) {
      return refuse(token_start(), fmt::format("nested deeper than {} levels", limits_.depth));
    }
    JsonValue* const placed = place(std::move(value));
    if (placed != nullptr) open_.push_back(placed);
    return placed != nullptr;
  }

  bool close() {
    done_ = read_to_;
    open_.pop_back();
    return true;
  }

  template <class T>
  JsonValue* place(T value) {
    const std::size_t offset = token_start();
    done_ = read_to_;
    if (++count_ > limits_.values) {
      refuse(offset, fmt::format("more than {} values", limits_.values));
      return nullptr;
    }
    JsonValue* target = &root_;
    if (!open_.empty()) {
      auto* const list = std::get_if<JsonValue::List>(&open_.back()->content);
      target = list != nullptr ? &list->emplace_back() : member_;
    }
    target->content = std::move(value);
    target->offset = offset;
    return target;
  }

  std::string_view text_;
  JsonLimits limits_;
  std::size_t text_offset_;
  const char* read_to_;  // how far the lexer has read
  const char* done_;     // the end of the last token reported
  JsonValue root_;
  std::vector<JsonValue*> open_;  // stable: only the innermost container grows
  JsonValue* member_ = nullptr;   // where the value of the last key goes
  std::size_t count_ = 0;
  std::string problem_;
  std::size_t problem_offset_ = 0;
};

std::string_view kind_name(const JsonValue& value) {
  constexpr std::array<std::string_view, 7> kNames = {"null",     "a boolean", "an integer", "a number",
                                                      "a string", "a list",    "an object"};
  return kNames[value.content.index()];
}

}  // namespace

Result<JsonValue> parse_json(std::string_view text, std::string_view file, const JsonLimits& limits,
                             std::size_t text_offset) {
  if (text.size() > limits.bytes) {
    return fail(ErrorCode::kInvalidFile, "{}: {} bytes of JSON, the limit is {}", file, text.size(), limits.bytes);
  }
  Builder builder(text, limits, text_offset);
  bool good = false;
  std::string problem = "not JSON";
  try {
    good = nlohmann::json::sax_parse(builder.begin(), builder.end(), &builder);
  } catch (const nlohmann::json::exception& error) {
    problem = error.what();
  }
  if (good) return std::move(builder.root());
  if (!builder.problem().empty()) problem = builder.problem();
  return fail(ErrorCode::kInvalidFile, "{}: at byte {}: {}", file, builder.problem_offset(), problem);
}

JsonField JsonField::child(const JsonValue& value, std::string_view key) const {
  const auto plain = [](char c) { return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_'; };
  JsonField field = *this;
  field.value_ = &value;
  if (!path_.empty()) field.path_ += '.';
  field.path_ += std::ranges::all_of(key, plain) ? std::string(key) : printable(key);
  return field;
}

std::unexpected<Error> JsonField::error(ErrorCode code, std::string_view what) const {
  return fail(code, "{}: {} at byte {}: {}", file_, path_.empty() ? "the root" : path_, value_->offset, what);
}

std::unexpected<Error> JsonField::expected(std::string_view what) const {
  return invalid(fmt::format("expected {}, found {}", what, kind_name(*value_)));
}

Result<std::optional<JsonField>> JsonField::find(std::string_view key) const {
  const auto* const object = std::get_if<JsonValue::Object>(&value_->content);
  if (object == nullptr) return expected("an object");
  const auto found = object->find(key);
  if (found == object->end() || std::holds_alternative<std::nullptr_t>(found->second.content)) return std::nullopt;
  return child(found->second, key);
}

Result<JsonField> JsonField::at(std::string_view key) const {
  QUERN_ASSIGN(auto found, find(key));
  if (!found) return invalid(fmt::format("has no '{}'", key));
  return *std::move(found);
}

Result<std::vector<JsonField>> JsonField::list(std::size_t most) const {
  const auto* const list = std::get_if<JsonValue::List>(&value_->content);
  if (list == nullptr) return expected("a list");
  if (list->size() > most) return invalid(fmt::format("a list of {}, the limit is {}", list->size(), most));
  std::vector<JsonField> fields;
  fields.reserve(list->size());
  for (const JsonValue& element : *list) {
    JsonField field = *this;
    field.value_ = &element;
    field.path_ += fmt::format("[{}]", fields.size());
    fields.push_back(std::move(field));
  }
  return fields;
}

Result<std::vector<std::pair<std::string_view, JsonField>>> JsonField::members() const {
  const auto* const object = std::get_if<JsonValue::Object>(&value_->content);
  if (object == nullptr) return expected("an object");
  std::vector<std::pair<std::string_view, JsonField>> fields;
  fields.reserve(object->size());
  for (const auto& [key, value] : *object) fields.emplace_back(key, child(value, key));
  return fields;
}

Result<std::int64_t> JsonField::integer(std::int64_t low, std::int64_t high) const {
  constexpr double kExact = 9007199254740992.0;  // 2^53: every integer up to here is a double of its own
  std::int64_t value = 0;
  if (const auto* const integer = std::get_if<std::int64_t>(&value_->content)) {
    value = *integer;
  } else if (const auto* const real = std::get_if<double>(&value_->content)) {
    if (std::trunc(*real) != *real || std::abs(*real) > kExact) {
      return invalid(fmt::format("expected an integer from {} to {}, found {}", low, high, *real));
    }
    value = static_cast<std::int64_t>(*real);
  } else {
    return expected("an integer");
  }
  if (value < low || value > high) {
    return invalid(fmt::format("expected an integer from {} to {}, found {}", low, high, value));
  }
  return value;
}

Result<double> JsonField::number(double low, double high) const {
  double value = 0.0;
  if (const auto* const integer = std::get_if<std::int64_t>(&value_->content)) {
    value = static_cast<double>(*integer);
  } else if (const auto* const real = std::get_if<double>(&value_->content)) {
    value = *real;
  } else {
    return expected("a number");
  }
  if (!(value >= low && value <= high)) {
    return invalid(fmt::format("expected a number from {} to {}, found {}", low, high, value));
  }
  return value;
}

Result<bool> JsonField::boolean() const {
  if (const auto* const value = std::get_if<bool>(&value_->content)) return *value;
  return expected("a boolean");
}

Result<std::string_view> JsonField::string() const {
  if (const auto* const value = std::get_if<std::string>(&value_->content)) return std::string_view(*value);
  return expected("a string");
}

}  // namespace quern::formats

// The document is built from SAX events: the library's own builder looks each key up in a list, which many keys make
// quadratic, and can't limit the depth.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "quern/wire/internal/json.h"

namespace quern::wire {
namespace {

/// As much of a key as an error shows.
std::string clip(std::string_view key) {
  constexpr std::size_t kShown = 64;
  return std::string(key.substr(0, kShown));
}

/// The events of one parse. A handler returns false to stop; why is then in `error`.
class Builder {
 public:
  Json root;
  Error error{ErrorCode::kInvalidRequest, "the body is not valid JSON"};

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() {
    open_.pop_back();
    return true;
  }

  bool key(std::string& name) {
    object(*open_.back()).emplace_back(std::move(name), nullptr);
    return true;
  }

  bool end_object() {
    const auto& members = object(*open_.back());
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const auto& member : members) names.push_back(member.first);
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
      error.param = clip(*twice);
      error.message = fmt::format("'{}' appears twice in one object", error.param);
      return false;
    }
    open_.pop_back();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& problem) {
    constexpr int kNumberOverflow = 406;
    if (problem.id == kNumberOverflow) {
      error.param = path();
      error.message = fmt::format("'{}': a number overflows", error.param);
    } else {
      error.message = fmt::format("the body is not valid JSON: error at byte {}", position);
    }
    return false;
  }

 private:
  static Json::object_t& object(Json& json) { return json.get_ref<Json::object_t&>(); }

  template <class Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root = std::forward<Value>(value);
      return &root;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.emplace_back(std::forward<Value>(value));
      return &items.back();
    }
    Json& slot = object(parent).back().second;
    slot = std::forward<Value>(value);
    return &slot;
  }

  template <class Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }

  bool open(Json&& container) {
    if (open_.size() == kMaxJsonDepth) {
      error.message = fmt::format("JSON nested deeper than {}", kMaxJsonDepth);
      return false;
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  // Of the value that is being read: "messages[2].content". A parent stays put while a child is open, so the pointers
  // hold.
  [[nodiscard]] std::string path() const {
    std::string text;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const Json& container = *open_[i];
      if (container.is_array()) {
        const std::size_t index = container.size() - (i + 1 < open_.size() ? 1 : 0);
        text += fmt::format("[{}]", index);
      } else if (!container.empty()) {
        if (!text.empty()) text += '.';
        text += clip(container.get_ref<const Json::object_t&>().back().first);
      }
    }
    return text;
  }

  std::vector<Json*> open_;  // outermost first
};

}  // namespace

Result<Json> parse_json(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return fail(std::move(builder.error));
  return std::move(builder.root);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace quern::wire

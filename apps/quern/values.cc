// Parsing and printing of values.
#include "values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace quern::app {
namespace {

template <class Number>
bool read_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row[b.size()];
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  if (read_whole(text, value) && value >= low && value <= high) return value;
  return fail(ErrorCode::kInvalidRequest, "expected a whole number from {} to {}, got '{}'", low, high, one_line(text));
}

Result<double> parse_number(std::string_view text, double low, double high) {
  double value = 0.0;
  if (read_whole(text, value) && std::isfinite(value) && value >= low && value <= high) return value;
  return fail(ErrorCode::kInvalidRequest, "expected a number from {} to {}, got '{}'", low, high, one_line(text));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{
      {"", 1.0},
      {"B", 1.0},
      {"KiB", 1024.0},
      {"MiB", 1024.0 * 1024.0},
      {"GiB", 1024.0 * 1024.0 * 1024.0},
      {"TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0},
      {"kB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
  }};
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* const found = std::ranges::find(kUnits, unit, &std::pair<std::string_view, double>::first);
  if (error == std::errc() && number >= 0.0 && found != kUnits.end()) {
    const double bytes = number * found->second;
    if (bytes < 9e18) return static_cast<std::uint64_t>(bytes);
  }
  return fail(ErrorCode::kInvalidRequest, "expected a size like 512MiB or 2GiB, got '{}'", one_line(text));
}

Result<bool> parse_switch(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kWords = {"false", "true", "no", "yes", "off", "on", "0", "1"};
  const auto* const found = std::ranges::find(kWords, text);
  if (found != kWords.end()) return (found - kWords.begin()) % 2 == 1;
  return fail(ErrorCode::kInvalidRequest, "expected true or false, got '{}'", one_line(text));
}

Result<std::size_t> parse_choice(std::string_view text, std::span<const std::string_view> choices) {
  const auto found = std::ranges::find(choices, text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  return fail(ErrorCode::kInvalidRequest, "expected one of {}, got '{}'", fmt::join(choices, ", "), one_line(text));
}

std::string format_size(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024.0 && unit + 1 < kUnits.size(); ++unit) value /= 1024.0;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = name.size() / 3 + 2;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string line(text.substr(0, limit));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  if (text.size() > limit) line += "...";
  return line;
}

}  // namespace quern::app

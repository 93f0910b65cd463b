// Values as people write them: numbers, sizes, switches, choices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quern/base/result.h"

namespace quern::app {

/// A whole number from `low` to `high`. Every function here fails with kInvalidRequest, saying what was expected and
/// seen.
[[nodiscard]] Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);
/// A finite number from `low` to `high`.
[[nodiscard]] Result<double> parse_number(std::string_view text, double low, double high);
/// Bytes: "1073741824", "512MiB", "2GiB", "1.5 GB". Units of 1024 with an i, of 1000 without.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
/// true, yes, on, 1 or false, no, off, 0.
[[nodiscard]] Result<bool> parse_switch(std::string_view text);
/// The index of `text` in `choices`.
[[nodiscard]] Result<std::size_t> parse_choice(std::string_view text, std::span<const std::string_view> choices);

/// "93.8 MiB"
[[nodiscard]] std::string format_size(std::uint64_t bytes);

/// The candidate nearest to a mistyped name, empty when none is near.
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

/// One line of at most `limit` bytes, control characters made spaces: for messages that quote what others wrote.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t limit = 200);

}  // namespace quern::app

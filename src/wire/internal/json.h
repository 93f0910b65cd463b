// JSON of untrusted bodies, with the key order kept.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "quern/base/result.h"

namespace quern::wire {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxJsonDepth = 128;

/// One document. kInvalidRequest: broken syntax or UTF-8 (with the byte), nesting over kMaxJsonDepth, a key that
/// appears twice in one object, a number that overflows a double (`param` names it). Time and memory are linear in the
/// size.
[[nodiscard]] Result<Json> parse_json(std::string_view text);

/// Compact text; never throws: what isn't UTF-8 is replaced.
[[nodiscard]] std::string dump(const Json& json);

}  // namespace quern::wire

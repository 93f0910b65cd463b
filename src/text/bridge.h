// What the bridge's C objects become in C++: owned pointers, results, strings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"

struct quern_buffer;
struct quern_bytes;
struct quern_ids;
struct quern_template;
struct quern_tokenizer;

namespace quern::text::bridge {

struct Free {
  void operator()(quern_tokenizer* tokenizer) const noexcept;
  void operator()(quern_template* parsed) const noexcept;
};
using TokenizerPointer = std::unique_ptr<quern_tokenizer, Free>;
using TemplatePointer = std::unique_ptr<quern_template, Free>;

/// A view for a call's arguments.
[[nodiscard]] quern_bytes bytes(std::string_view text);
[[nodiscard]] std::string_view view(quern_bytes bytes);
/// Copies out, and frees.
[[nodiscard]] std::string take(quern_buffer buffer);
[[nodiscard]] std::vector<std::int32_t> take(quern_ids ids);

/// Runs a call that returns a quern_status. What it finds invalid is `invalid`, what it doesn't know is
/// kUnsupportedFormat, a bug kInternal; `where` stands in front of the message unless it's empty.
[[nodiscard]] Result<void> call(ErrorCode invalid, std::string_view where,
                                const std::function<int(quern_buffer* error)>& function);

}  // namespace quern::text::bridge

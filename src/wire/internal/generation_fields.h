// The fields that both kinds of completion request share.
#pragma once

#include "quern/wire/internal/fields.h"
#include "quern/wire/requests.h"

namespace quern::wire {

/// `min_max_tokens` is the least that max_tokens may be. Errors are left in `fields`.
void read_generation(Fields& fields, const sampling::SamplingParams& defaults, std::int64_t min_max_tokens,
                     GenerationFields& out);
void read_reply(Fields& fields, ReplyFields& out);
/// The body as an object.
[[nodiscard]] Result<Json> parse_body(std::string_view body);

}  // namespace quern::wire

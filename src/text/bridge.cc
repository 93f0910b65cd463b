// What the bridge's C objects become in C++: owned pointers, results, strings.
#include "quern/text/bridge.h"

#include "quern_bridge.h"

namespace quern::text::bridge {

void Free::operator()(quern_tokenizer* tokenizer) const noexcept {
  quern_tokenizer_free(tokenizer);
}
void Free::operator()(quern_template* parsed) const noexcept {
  quern_template_free(parsed);
}

quern_bytes bytes(std::string_view text) {
  return {.data = reinterpret_cast<const std::uint8_t*>(text.data()), .size = text.size()};
}

std::string_view view(quern_bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

std::string take(quern_buffer buffer) {
  std::string text(reinterpret_cast<const char*>(buffer.data), buffer.size);
  quern_buffer_free(buffer);
  return text;
}

std::vector<std::int32_t> take(quern_ids ids) {
  std::vector<std::int32_t> values(ids.data, ids.data + ids.size);
  quern_ids_free(ids);
  return values;
}

Result<void> call(ErrorCode invalid, std::string_view where, const std::function<int(quern_buffer* error)>& function) {
  quern_buffer error{};
  const int status = function(&error);
  if (status == QUERN_OK) return {};
  std::string message = take(error);
  if (!where.empty()) message = fmt::format("{}: {}", where, message);
  switch (status) {
    case QUERN_INVALID:
      return fail({invalid, std::move(message)});
    case QUERN_UNSUPPORTED:
      return fail({ErrorCode::kUnsupportedFormat, std::move(message)});
    default:
      return fail({ErrorCode::kInternal, std::move(message)});
  }
}

}  // namespace quern::text::bridge

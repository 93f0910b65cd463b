// A conversation as JSON.
#include "conversation.h"

#include <nlohmann/json.hpp>

namespace quern::app {

void Conversation::restart(std::string system) {
  system_ = std::move(system);
  turns_.clear();
}

void Conversation::add(std::string role, std::string content) {
  turns_.push_back({std::move(role), std::move(content)});
}

text::ChatInput Conversation::input() const {
  auto messages = nlohmann::ordered_json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  for (const Turn& turn : turns_) messages.push_back({{"role", turn.role}, {"content", turn.content}});
  text::ChatInput input;
  input.messages_json = messages.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return input;
}

}  // namespace quern::app

// Conversation: the messages of a chat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quern/text/chat_template.h"

namespace quern::app {

/// A system message, or none when it is empty, and the turns so far.
class Conversation {
 public:
  explicit Conversation(std::string system) : system_(std::move(system)) {}

  [[nodiscard]] const std::string& system() const { return system_; }
  /// Replaces the system message and forgets the turns.
  void restart(std::string system);
  /// `role` is "user" or "assistant".
  void add(std::string role, std::string content);
  /// Takes the last turn back.
  void drop_last() { turns_.pop_back(); }
  [[nodiscard]] std::size_t turns() const { return turns_.size(); }
  /// What a chat template renders. Bytes that aren't UTF-8 become U+FFFD.
  [[nodiscard]] text::ChatInput input() const;

 private:
  struct Turn {
    std::string role;
    std::string content;
  };
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace quern::app

// Conversation: what the template is given.
#include "conversation.h"

#include <gtest/gtest.h>

namespace quern::app {
namespace {

TEST(Conversation, HoldsSystemAndTurnsInOrder) {
  Conversation conversation("Be brief.");
  conversation.add("user", "Hi \"you\"");
  conversation.add("assistant", "Hello");
  EXPECT_EQ(conversation.input().messages_json,
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi \"you\""},)"
            R"({"role":"assistant","content":"Hello"}])");
  conversation.drop_last();
  EXPECT_EQ(conversation.turns(), 1U);
  conversation.restart("");
  conversation.add("user", "again");
  EXPECT_EQ(conversation.input().messages_json, R"([{"role":"user","content":"again"}])") << "no empty system message";
}

TEST(Conversation, BytesThatArentUtf8DontEndIt) {
  Conversation conversation("");
  conversation.add("user", "a\xff");
  EXPECT_EQ(conversation.input().messages_json, "[{\"role\":\"user\",\"content\":\"a\ufffd\"}]");
}

}  // namespace
}  // namespace quern::app

// Tests of tokenizers against Hugging Face's: fixtures/cases/tokenizer holds vocabularies in both forms, and token ids.
#include "quern/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "quern/text/chat_template.h"
#include "quern/text/detokenizer.h"
#include "support/starter.h"

namespace quern::text {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<TokenId>;

const std::filesystem::path kFolder = QUERN_FIXTURES "/cases/tokenizer";

Json golden(const std::string& name) {
  std::ifstream file(kFolder / name / "golden.json");
  return Json::parse(file);
}

std::unique_ptr<Tokenizer> from_gguf(const std::filesystem::path& path) {
  auto file = formats::GgufFile::open(path);
  EXPECT_TRUE(file) << file.error().message;
  if (!file) return nullptr;
  auto tokenizer = Tokenizer::from_gguf(*file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::unique_ptr<Tokenizer> from_folder(const std::filesystem::path& path) {
  auto tokenizer = Tokenizer::from_folder(path);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

void expect_golden(const Tokenizer& tokenizer, const std::string& name) {
  const Json cases = golden(name);
  ASSERT_GT(cases.size(), 300u);
  for (const Json& entry : cases) {
    const auto text = entry["text"].get<std::string>();
    SCOPED_TRACE(entry["text"].dump());
    const auto ids = tokenizer.encode(text, Tokenizer::Special::kParse);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, entry["ids"].get<Ids>());
    const auto plain = tokenizer.encode(text, Tokenizer::Special::kPlain);
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_EQ(*plain, entry.value("plain", entry["ids"]).get<Ids>());
    for (const TokenId id : *plain) {
      if (tokenizer.is_special(id)) {
        EXPECT_THAT(*tokenizer.token_text(id), testing::AnyOf("<unk>", "[UNK]"));
      }
    }

    const std::string want = entry.value("decoded", text);
    EXPECT_EQ(tokenizer.decode(*ids), want);
    Detokenizer detokenizer(tokenizer);
    std::string streamed;
    for (const TokenId id : *ids) streamed += detokenizer.push(id);
    EXPECT_EQ(streamed, want);
    EXPECT_FALSE(detokenizer.holds_partial());
  }
}

class TinyTokenizer : public testing::TestWithParam<std::string> {};

TEST_P(TinyTokenizer, FromJsonGivesHuggingFacesIds) {
  const auto tokenizer = from_folder(kFolder / GetParam());
  ASSERT_TRUE(tokenizer);
  expect_golden(*tokenizer, GetParam());
}

TEST_P(TinyTokenizer, FromGgufGivesTheSame) {
  const auto tokenizer = from_gguf(kFolder / GetParam() / "metadata.gguf");
  ASSERT_TRUE(tokenizer);
  expect_golden(*tokenizer, GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, TinyTokenizer,
                         testing::Values("llama_bpe", "qwen2", "sentencepiece_bpe", "unigram", "word_piece"),
                         [](const auto& chosen) { return chosen.param; });

TEST(StarterTokenizer, GivesHuggingFacesIds) {
  const auto path = test::starter_model();
  if (!path) GTEST_SKIP() << test::kNoStarter;
  const auto tokenizer = from_gguf(*path);
  ASSERT_TRUE(tokenizer);
  expect_golden(*tokenizer, "starter");
}

TEST(Tokenizer, BosIsPutOnceWhereTheFileWantsIt) {
  const auto tokenizer = from_gguf(kFolder / "sentencepiece_bpe" / "metadata.gguf");
  ASSERT_TRUE(tokenizer);
  EXPECT_TRUE(tokenizer->add_bos());
  const Ids plain = *tokenizer->encode("a", Tokenizer::Special::kParse);
  Ids want = {1};
  want.insert(want.end(), plain.begin(), plain.end());
  for (const std::string_view text : {"a", "<s>a", "<s><s>a"}) {
    EXPECT_EQ(*tokenizer->encode_prompt(text, Tokenizer::Special::kParse), want) << text;
  }
  EXPECT_EQ(*tokenizer->encode_prompt("", Tokenizer::Special::kParse), Ids{1});
  EXPECT_THAT(tokenizer->eos_set(), testing::ElementsAre(2));
}

TEST(Tokenizer, SpecialTextOfAMessageStaysText) {
  for (const char* const name : {"llama_bpe", "sentencepiece_bpe", "unigram", "word_piece"}) {
    const auto tokenizer = from_folder(kFolder / name);
    ASSERT_TRUE(tokenizer);
    const std::string special = tokenizer->special_texts().front();
    const auto parsed =
        ChatTemplate::parse("{% for m in messages %}" + special + "{{ m.content }}{% endfor %}", "", "");
    ASSERT_TRUE(parsed);
    Json messages = Json::array();
    messages.push_back({{"role", "user"}, {"content", "fox " + special + " dog \uFDD0" + special}});
    const auto prompt = (*parsed)->tokenize({.messages_json = messages.dump()}, *tokenizer);
    ASSERT_TRUE(prompt) << prompt.error().message;
    EXPECT_EQ(prompt->text, special + messages[0]["content"].get<std::string>());
    const TokenId id = *tokenizer->token_id(special);
    EXPECT_EQ(std::count(prompt->tokens.begin(), prompt->tokens.end(), id), 1) << name;
    // The template's own stands in front; the content behind it is what it is alone.
    const Ids plain = *tokenizer->encode(messages[0]["content"].get<std::string>(), Tokenizer::Special::kPlain);
    EXPECT_EQ(Ids(prompt->tokens.end() - static_cast<std::ptrdiff_t>(plain.size()), prompt->tokens.end()), plain)
        << name;
  }
}

TEST(Tokenizer, WhatIsWrongIsNamed) {
  const auto missing = Tokenizer::from_folder("/nowhere");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  const auto tokenizer = from_folder(kFolder / "qwen2");
  ASSERT_TRUE(tokenizer);
  const auto invalid = tokenizer->encode("a\xFFz", Tokenizer::Special::kParse);
  ASSERT_FALSE(invalid);
  EXPECT_EQ(invalid.error().code, ErrorCode::kInvalidRequest);
  EXPECT_EQ(tokenizer->token_text(-1), std::nullopt);
  EXPECT_EQ(tokenizer->token_text(1 << 20), std::nullopt);
  EXPECT_EQ(tokenizer->token_bytes(1 << 20, false), "");
}

}  // namespace
}  // namespace quern::text

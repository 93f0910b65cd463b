// The starter model, a real GGUF file: parsed whole, quickly.
#include <gtest/gtest.h>

#include "quern/formats/gguf.h"
#include "support/starter.h"

namespace quern::formats {
namespace {

class Starter : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::starter_model();
    if (!path) GTEST_SKIP() << test::kNoStarter;
    auto opened = GgufFile::open(*path);
    ASSERT_TRUE(opened) << opened.error().message;
    file_ = *std::move(opened);
  }

  GgufFile file_;
};

TEST_F(Starter, MetadataIsRead) {
  EXPECT_EQ(file_.string("general.architecture").value(), "llama");
  EXPECT_EQ(file_.integer("llama.block_count").value(), 30);
  EXPECT_EQ(file_.integer("llama.context_length").value(), 8192);
  EXPECT_EQ(file_.integer("llama.embedding_length").value(), 576);
  EXPECT_EQ(file_.integer("llama.attention.head_count").value(), 9);
  EXPECT_EQ(file_.integer("llama.attention.head_count_kv").value(), 3);
  EXPECT_NEAR(file_.number("llama.attention.layer_norm_rms_epsilon").value().value(), 1e-5, 1e-11);
  EXPECT_EQ(file_.integer("no.such.key").value(), std::nullopt);
}

TEST_F(Starter, VocabularyIsRead) {
  const auto tokens = file_.array("tokenizer.ggml.tokens").value().value().strings();
  ASSERT_TRUE(tokens);
  ASSERT_EQ(tokens->size(), 49152U);
  EXPECT_EQ((*tokens)[0], "<|endoftext|>");
  EXPECT_EQ((*tokens)[2], "<|im_end|>");
  EXPECT_EQ(file_.array("tokenizer.ggml.token_type").value().value().integers().value().size(), 49152U);
}

TEST_F(Starter, TensorsAreMatrices) {
  const GgufTensor* const embedding = file_.find_tensor("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->encoding, tensor::Encoding::kQ8_0);
  EXPECT_EQ(embedding->shape, (std::vector<std::int64_t>{49152, 576}));
  std::size_t bytes = 0;
  for (const GgufTensor& one : file_.tensors()) {
    const auto checked = tensor::check_matrix(one.matrix());
    EXPECT_TRUE(checked) << one.name << ": " << checked.error().message;
    bytes += one.data.size();
  }
  EXPECT_GT(bytes, 95'000'000U);
  EXPECT_EQ(file_.tensors().size(), 272U);
}

}  // namespace
}  // namespace quern::formats

// Hugging Face's JSON files: what is read from the corpus's valid ones.
#include "quern/formats/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quern/os/file.h"

namespace quern::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Pair;

std::string read(const std::string& name) {
  return os::read_file(std::filesystem::path(QUERN_FIXTURES) / "corpus" / "hf_config" / name, 1 << 20).value();
}

HfConfig config(const std::string& name) {
  auto parsed = HfConfig::parse(read(name), name);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return *std::move(parsed);
}

TEST(HfConfig, FieldsAreReadByType) {
  const HfConfig llama = config("config_valid");
  EXPECT_EQ(llama.model_type(), "llama");
  EXPECT_THAT(llama.architectures(), ElementsAre("LlamaForCausalLM"));
  EXPECT_EQ(llama.integer("hidden_size", 1, 576).value(), 576);
  EXPECT_EQ(llama.number("rms_norm_eps", 0, 1).value(), 1e-5);
  EXPECT_EQ(llama.boolean("tie_word_embeddings").value(), true);
  EXPECT_EQ(llama.string("model_type").value(), "llama");
  EXPECT_EQ(llama.integer("sliding_window", 1, 10).value(), std::nullopt) << "null is absent";
  EXPECT_EQ(llama.integer("no_such_field", 1, 10).value(), std::nullopt);
  EXPECT_EQ(llama.integer("hidden_size", 1, 575).error().message,
            "config_valid: hidden_size at byte 78: expected an integer from 1 to 575, found 576");
  EXPECT_EQ(llama.rope_number("rope_theta", 1, 1e9).value(), 100000.0) << "at the top level";
  EXPECT_FALSE(llama.rope_scaling());
  EXPECT_FALSE(llama.quantization());
}

TEST(HfConfig, ListsOfIntegers) {
  const auto parsed = HfConfig::parse(R"({"eos_token_id": [1, 2], "layers": [1, "x"]})", "file").value();
  EXPECT_THAT(parsed.integers("eos_token_id").value().value(), ElementsAre(1, 2));
  EXPECT_THAT(parsed.integers("eos_token_id", 0, 1).error().message, EndsWith("from 0 to 1, found 2"));
  EXPECT_THAT(parsed.integers("layers").error().message,
              EndsWith("layers[1] at byte 39: expected an integer, found a string"));
}

TEST(HfConfig, RotaryScaling) {
  const HfConfig llama3 = config("config_valid_rope_scaling");
  ASSERT_TRUE(llama3.rope_scaling());
  EXPECT_EQ(llama3.rope_scaling()->type, "llama3");
  EXPECT_THAT(llama3.rope_scaling()->numbers,
              ElementsAre(Pair("factor", 8.0), Pair("high_freq_factor", 4.0), Pair("low_freq_factor", 1.0),
                          Pair("original_max_position_embeddings", 8192.0)));
  const HfConfig phi = config("config_valid_rope_parameters");
  EXPECT_EQ(phi.rope_scaling()->type, "su");
  EXPECT_EQ(phi.rope_number("rope_theta", 1, 1e9).value(), 500000.0);
  EXPECT_THAT(phi.rope_scaling()->short_factor, ElementsAre(1.0, 1.5));
  EXPECT_THAT(phi.rope_scaling()->long_factor, ElementsAre(2.0, 4.0));
}

TEST(HfConfig, RopeScalingWinsOverRopeParameters) {
  const auto both = HfConfig::parse(R"({"rope_scaling": {"type": "old", "rope_type": "linear", "factor": 2},
                                        "rope_parameters": {"rope_type": "default", "factor": 1, "rope_theta": 5}})",
                                    "file")
                        .value();
  EXPECT_EQ(both.rope_scaling()->type, "linear");
  EXPECT_THAT(both.rope_scaling()->numbers, ElementsAre(Pair("factor", 2.0), Pair("rope_theta", 5.0)));
}

TEST(HfConfig, QuantizationWithModulesOfTheirOwn) {
  const HfConfig mlx = config("config_valid_mlx");
  ASSERT_TRUE(mlx.quantization());
  EXPECT_EQ(mlx.quantization()->defaults.bits, 4);
  EXPECT_EQ(mlx.quantization()->defaults.group, 64);
  EXPECT_EQ(mlx.quantization()->defaults.mode, "affine");
  const auto& modules = mlx.quantization()->modules;
  EXPECT_EQ(modules.size(), 3U);
  EXPECT_EQ(modules.at("lm_head").bits, 0);
  EXPECT_EQ(modules.at("model.embed_tokens").bits, 4);
  EXPECT_EQ(modules.at("model.layers.0.mlp.down_proj").bits, 6);
  EXPECT_EQ(modules.at("model.layers.0.mlp.down_proj").group, 32);
  EXPECT_EQ(config("config_valid_mxfp4").quantization()->defaults.mode, "mxfp4");
}

TEST(HfConfig, OpensAFolder) {
  const auto missing = HfConfig::open("/no/such/folder");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

TEST(GenerationConfig, DefaultsAndEndOfSequence) {
  const auto full = parse_generation_config(read("generation_valid"), "file").value();
  EXPECT_THAT(full.eos_token_ids, ElementsAre(2, 0));
  EXPECT_EQ(full.temperature, 0.6);
  EXPECT_EQ(full.top_p, 0.9);
  EXPECT_EQ(full.top_k, 50);
  EXPECT_EQ(full.min_p, 0.05);
  EXPECT_EQ(full.repetition_penalty, 1.1);
  EXPECT_EQ(full.max_new_tokens, 100);
  const auto one = parse_generation_config(read("generation_valid_one_eos"), "file").value();
  EXPECT_THAT(one.eos_token_ids, ElementsAre(2));
  EXPECT_EQ(one.temperature, std::nullopt);
}

TEST(TokenizerConfig, TokensAndTemplates) {
  const auto one = parse_tokenizer_config(read("tokenizer_valid"), "file").value();
  EXPECT_EQ(one.add_bos_token, false);
  EXPECT_EQ(one.add_eos_token, std::nullopt);
  EXPECT_EQ(one.bos_token, "<s>") << "from an object";
  EXPECT_EQ(one.eos_token, "</s>");
  EXPECT_EQ(one.pad_token, std::nullopt);
  EXPECT_THAT(one.chat_templates, ElementsAre(Pair("default", "{{ messages }}")));
  const auto named = parse_tokenizer_config(read("tokenizer_valid_templates"), "file").value();
  EXPECT_THAT(named.chat_templates, ElementsAre(Pair("default", "a"), Pair("tool_use", "b")));
}

}  // namespace
}  // namespace quern::formats

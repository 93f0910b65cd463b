// Every file of the corpus gives exactly what fixtures/cases/formats says: valid ones parse, hostile ones fail by name.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "quern/formats/gguf.h"
#include "quern/formats/hf_config.h"
#include "quern/formats/safetensors.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error();
}

// The look-ups that a model makes, with ranges as it would ask for them.
std::optional<Error> read_config(const std::string& text, const std::string& name) {
  const auto config = HfConfig::parse(text, name);
  if (!config) return config.error();
  for (const char* const field : {"hidden_size", "num_hidden_layers"}) {
    if (auto error = error_of(config->integer(field, 1, 1'000'000))) return error;
  }
  return error_of(config->number("rms_norm_eps", 0.0, 1.0));
}

std::optional<Error> parse(const std::string& kind, const std::string& text, const std::string& name) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(text.data()), text.size());
  if (kind == "gguf") return error_of(GgufFile::parse(bytes, name));
  if (kind == "safetensors") return error_of(SafeTensors::parse(bytes, name));
  if (name.starts_with("generation_")) return error_of(parse_generation_config(text, name));
  if (name.starts_with("tokenizer_")) return error_of(parse_tokenizer_config(text, name));
  if (name.starts_with("index_")) return error_of(parse_shard_index(text, name));
  return read_config(text, name);
}

class Corpus : public ::testing::TestWithParam<std::string> {};

TEST_P(Corpus, EachFileGivesWhatItsCaseSays) {
  const fs::path fixtures(QUERN_FIXTURES);
  auto cases = nlohmann::json::parse(read(fixtures / "cases" / "formats" / (GetParam() + ".json")));
  for (const fs::directory_entry& entry : fs::directory_iterator(fixtures / "corpus" / GetParam())) {
    const std::string name = entry.path().filename().string();
    const auto error = parse(GetParam(), read(entry.path()), name);
    if (name.starts_with("found_")) continue;  // a fuzzer's: that it ends well is enough
    if (name.find("valid") != std::string::npos) {
      EXPECT_FALSE(error) << name << ": " << error->message;
      continue;
    }
    ASSERT_TRUE(error) << name << " parsed";
    // After the file's name; what follows "not JSON" is the JSON library's own text.
    ASSERT_TRUE(error->message.starts_with(name + ": ")) << error->message;
    std::string message = error->message.substr(name.size() + 2);
    if (const auto at = message.find("not JSON"); at != std::string::npos) message.resize(at + 8);
    const nlohmann::json seen = {error_name(error->code), message};
    EXPECT_EQ(cases[name], seen) << name;
    cases.erase(name);
  }
  EXPECT_TRUE(cases.empty()) << "cases without a file: " << cases;
}

INSTANTIATE_TEST_SUITE_P(Formats, Corpus, ::testing::Values("gguf", "safetensors", "hf_config"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace quern::formats

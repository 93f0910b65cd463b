// Tiny models of random weights in every form that we read: each loads and agrees with its golden values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "quern/model/loader.h"
#include "quern/ops/reference.h"
#include "support/golden.h"
#include "support/model_runner.h"

namespace quern::model {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = fs::path(QUERN_FIXTURES) / "models";

std::vector<std::string> twin_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kModels)) {
    if (fs::exists(entry.path() / "golden.safetensors")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string model_path(const std::string& twin) {
  const fs::path gguf = kModels / twin / "model.gguf";
  return fs::exists(gguf) ? gguf.string() : (kModels / twin).string();
}

using Values = std::map<std::string, std::vector<float>, std::less<>>;

struct Golden {
  std::vector<std::int32_t> tokens;
  Values values;
};

Golden read_golden(const std::string& twin) {
  const auto file = formats::SafeTensors::open(kModels / twin / "golden.safetensors");
  QUERN_CHECK(file.has_value());
  Golden golden;
  for (const auto& [name, tensor] : file->tensors()) {
    if (name == "tokens") {
      golden.tokens = test::elements<std::int32_t>(tensor);
    } else {
      golden.values[name] = test::elements<float>(tensor);
    }
  }
  return golden;
}

class Twin : public testing::TestWithParam<std::string> {};

TEST_P(Twin, AgreesWithItsGoldenValues) {
  const auto device = ops::make_reference_device();
  const auto model = load_model(model_path(GetParam()), *device);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Golden golden = read_golden(GetParam());
  ASSERT_TRUE(golden.values.contains("logits"));

  Values seen;
  test::ModelRunner runner(**model, *device, 64);
  runner.run(golden.tokens, golden.tokens.size(),
             [&](std::string_view name, ops::Mat values) { seen[std::string(name)] = test::copy(values); });
  for (const auto& [name, expected] : golden.values) {
    EXPECT_LT(test::relative_error(seen[name], expected), 1e-4) << name;
  }
}

TEST_P(Twin, GivesTheSameBitsTokenByToken) {
  const auto device = ops::make_reference_device();
  const auto model = load_model(model_path(GetParam()), *device);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const std::vector<std::int32_t> tokens = read_golden(GetParam()).tokens;

  test::ModelRunner whole(**model, *device, 64);
  const std::vector<float> expected = whole.run(tokens, tokens.size());
  test::ModelRunner single(**model, *device, 64);
  std::vector<float> logits;
  for (const std::int32_t token : tokens) {
    const std::vector<float> row = single.run({&token, 1}, 1);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  EXPECT_EQ(logits, expected);
}

std::string test_name(const testing::TestParamInfo<std::string>& twin) {
  std::string name = twin.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, Twin, testing::ValuesIn(twin_names()), test_name);

TEST(Twins, AreAllThere) {
  EXPECT_EQ(twin_names().size(), 36U);
}

}  // namespace
}  // namespace quern::model

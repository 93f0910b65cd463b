// What is refused when a model is loaded, and with which words; progress; cancellation; synthetic models.
#include "quern/model/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quern/base/check.h"
#include "quern/ops/reference.h"
#include "quern/os/file.h"
#include "quern/tensor/encoding.h"
#include "support/golden.h"
#include "support/model_runner.h"

namespace quern::model {
namespace {

namespace fs = std::filesystem;
using test::kModels;
using testing::HasSubstr;

/// A folder of a test's own, gone with it.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "quern-model-XXXXXX").string();
    QUERN_CHECK(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  fs::path path_;
};

std::string read(const fs::path& path) {
  auto bytes = os::read_file(path, std::size_t{1} << 24);
  QUERN_CHECK(bytes.has_value());
  return *std::move(bytes);
}

nlohmann::json cases() {
  return nlohmann::json::parse(read(fs::path(QUERN_FIXTURES) / "cases/model/folder.json"));
}

Result<std::unique_ptr<Model>> load_changed(const nlohmann::json& change, ops::Device& device) {
  nlohmann::json config = nlohmann::json::parse(read(kModels / "llama/config.json"));
  config.merge_patch(change);
  const Folder folder;
  folder.write("config.json", config.dump());
  fs::create_symlink(kModels / "llama/model.safetensors", folder.path() / "model.safetensors");
  return load_model(folder.path().string(), device);
}

TEST(LoadFolder, RefusesByName) {
  const auto device = ops::make_reference_device();
  const auto refused = cases()["refused"];  // a copy: what cases() gives ends with the statement
  for (const auto& item : refused) {
    const auto model = load_changed(item["change"], *device);
    ASSERT_FALSE(model.has_value()) << item;
    EXPECT_THAT(model.error().message, HasSubstr(item["says"].get<std::string>())) << item;
    EXPECT_EQ(error_name(model.error().code), item["code"]) << item;
  }
}

TEST(LoadFolder, AcceptsWhatIsTheSame) {
  const auto device = ops::make_reference_device();
  const auto accepted = cases()["accepted"];
  for (const auto& item : accepted) {
    const auto model = load_changed(item["change"], *device);
    EXPECT_TRUE(model.has_value()) << item << ": " << model.error().message;
  }
}

/// The GGUF twin with the first `from` in its bytes replaced by `to`, of the same length.
Result<std::unique_ptr<Model>> load_patched(std::string_view twin, std::string_view from, std::string_view to,
                                            ops::Device& device) {
  QUERN_CHECK(from.size() == to.size());
  std::string bytes = read(kModels / twin / "model.gguf");
  const std::size_t at = bytes.find(from);
  QUERN_CHECK(at != std::string::npos);
  bytes.replace(at, from.size(), to);
  const Folder folder;
  folder.write("model.gguf", bytes);
  return load_model((folder.path() / "model.gguf").string(), device);
}

TEST(LoadGguf, RefusesByName) {
  struct Case {
    std::string_view twin, from, to, says;
    ErrorCode code;
  };
  const std::vector<Case> refused = {
      {"gguf-q4_0", "llama", "lxama", "architecture 'lxama' isn't known", ErrorCode::kUnsupportedFormat},
      {"gguf-rope-yarn", std::string_view("\4\0\0\0\0\0\0\0yarn", 12), std::string_view("\4\0\0\0\0\0\0\0yorn", 12),
       "rope scaling 'yorn' isn't known", ErrorCode::kUnsupportedFormat},
      {"gguf-q4_0", "llama.block_count", "llama.block_coznt", "llama.block_count is missing", ErrorCode::kInvalidFile},
      {"gguf-q4_0", "blk.0.attn_q.", "blk.0.attn_z.", "'blk.0.attn_q.weight' is missing", ErrorCode::kInvalidFile},
      {"gguf-q4_0", "output_norm", "output_nerm", "'output_norm.weight' is missing", ErrorCode::kInvalidFile},
  };
  const auto device = ops::make_reference_device();
  for (const Case& item : refused) {
    const auto model = load_patched(item.twin, item.from, item.to, *device);
    ASSERT_FALSE(model.has_value()) << item.says;
    EXPECT_THAT(model.error().message, HasSubstr(std::string(item.says)));
    EXPECT_EQ(model.error().code, item.code) << item.says;
  }
}

TEST(Loading, TellsItsProgress) {
  const auto device = ops::make_reference_device();
  std::vector<double> told;
  const auto model = load_model((kModels / "llama").string(), *device, [&](double share) { told.push_back(share); });
  ASSERT_TRUE(model.has_value());
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 1.0);
}

TEST(Loading, StopsWithTheReasonOfItsCancellation) {
  const auto device = ops::make_reference_device();
  CancellationSource source;
  source.cancel({ErrorCode::kCancelled, "the reader left"});
  const auto model = load_model((kModels / "llama").string(), *device, {}, source.token());
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().message, "the reader left");
}

TEST(Loading, SaysThatNothingIsThere) {
  const auto device = ops::make_reference_device();
  for (const char* path : {"/nowhere/model.gguf", "/nowhere/model"}) {
    const auto model = load_model(path, *device);
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().code, ErrorCode::kIo);
    EXPECT_THAT(model.error().message, HasSubstr(path));
  }
}

TEST(Synthetic, IsParsedOrRefusedByName) {
  const auto spec = parse_synthetic("synthetic:llama-1b?ctx=65536&bits=6&group=128&seed=9");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->shape, "llama-1b");
  EXPECT_EQ(spec->context, 65536);
  EXPECT_EQ(spec->bits, 6);
  EXPECT_EQ(spec->group, 128);
  EXPECT_EQ(spec->seed, 9U);
  EXPECT_TRUE(parse_synthetic("synthetic:tiny").has_value());

  const std::vector<std::pair<const char*, const char*>> refused = {
      {"synthetic:llama-2b", "shape 'llama-2b' isn't known (known: tiny, llama-135m"},
      {"synthetic:tiny?bits=7", "bits is 7, expected one of 2, 3, 4, 5, 6, 8, 16, 32"},
      {"synthetic:tiny?group=48", "group is 48, expected one of 16, 32, 64, 128"},
      {"synthetic:tiny?ctx=0", "ctx is '0', expected a number from 1"},
      {"synthetic:tiny?seed=x", "seed is 'x'"},
      {"synthetic:tiny?depth=3", "'depth' isn't known (known: ctx, bits, group, seed)"},
      {"synthetic:tiny?ctx", "'ctx' isn't key=value"},
  };
  for (const auto& [name, says] : refused) {
    const auto wrong = parse_synthetic(name);
    ASSERT_FALSE(wrong.has_value()) << name;
    EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidRequest);
    EXPECT_THAT(wrong.error().message, HasSubstr(says));
  }
}

std::vector<float> synthetic_logits(const std::string& name) {
  const auto device = ops::make_reference_device();
  auto model = load_model(name, *device);
  QUERN_CHECK(model.has_value());
  EXPECT_EQ((*model)->config().vocab, 49152);
  test::ModelRunner runner(**model, *device, 16);
  const std::vector<std::int32_t> tokens = {1, 49151, 300};
  return runner.run(tokens, 1);
}

TEST(Synthetic, IsAFunctionOfItsSeedWithSaneValues) {
  for (const int bits : {2, 3, 4, 5, 6, 8, 16, 32}) {
    const std::string name = fmt::format("synthetic:tiny?bits={}&group=128&seed=", bits);  // 64 columns: groups of 64
    const std::vector<float> logits = synthetic_logits(name + "1");
    EXPECT_EQ(logits, synthetic_logits(name + "1"));
    EXPECT_NE(logits, synthetic_logits(name + "2"));
    double sum = 0.0;
    for (const float logit : logits) sum += double{logit} * logit;
    const double deviation = std::sqrt(sum / static_cast<double>(logits.size()));
    EXPECT_GT(deviation, 0.3) << name;
    EXPECT_LT(deviation, 3.0) << name;
  }
}

}  // namespace
}  // namespace quern::model

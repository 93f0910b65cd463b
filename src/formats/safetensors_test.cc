// safetensors files and sharded models on disk: what is found, and what is refused.
#include "quern/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quern/os/file.h"
#include "support/safetensors.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;
using test::safetensors;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Model : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "quern_safetensors" /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(os::write_file(folder_ / name, content));
  }
  // A shard with one-element tensors of these names.
  void write_shard(const std::string& name, const std::vector<std::string>& tensors) {
    std::vector<test::TensorBytes> list;
    for (const std::string& tensor : tensors) list.push_back({tensor, "U8", {1}, tensor.substr(0, 1)});
    write(name, safetensors(list));
  }
  void write_index(const std::string& map) { write("model.safetensors.index.json", R"({"weight_map": )" + map + "}"); }

  Error error() {
    const auto opened = SafeTensors::open(folder_);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }

  fs::path folder_;
};

TEST_F(Model, OneFile) {
  write("model.safetensors", safetensors({{"w", "F32", {2, 3}, std::string(24, 'x')}, {"b", "BF16", {}, "yz"}}));
  for (const fs::path& path : {folder_, folder_ / "model.safetensors"}) {
    const auto model = SafeTensors::open(path);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->tensors().size(), 2U);
    const SafeTensor* const w = model->find("w");
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->dtype, tensor::DType::kF32);
    EXPECT_THAT(w->shape, ElementsAre(2, 3));
    EXPECT_EQ(w->data.size(), 24U);
    EXPECT_EQ(model->find("b")->data.front(), std::byte{'y'});
    EXPECT_EQ(model->file_name(*w), (folder_ / "model.safetensors").string());
    model->drop_pages(*w);
    EXPECT_EQ(w->data.front(), std::byte{'x'}) << "dropped pages come back";
    EXPECT_EQ(model->find("none"), nullptr);
  }
}

TEST_F(Model, TheOnlyFileWhateverItsName) {
  write_shard("adapters.safetensors", {"a"});
  EXPECT_TRUE(SafeTensors::open(folder_));
  write_shard("second.safetensors", {"a"});
  EXPECT_THAT(error().message, EndsWith("2 *.safetensors files and no model.safetensors.index.json"));
}

TEST_F(Model, AnEmptyFolderIsRefused) {
  EXPECT_THAT(error().message, EndsWith("0 *.safetensors files and no model.safetensors.index.json"));
}

TEST_F(Model, ShardsAreOneModel) {
  write_shard("m-1.safetensors", {"a", "b"});
  write_shard("m-2.safetensors", {"c", "unlisted"});
  write_index(R"({"a": "m-1.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"})");
  for (const fs::path& path : {folder_, folder_ / "model.safetensors.index.json"}) {
    const auto model = SafeTensors::open(path);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->tensors().size(), 3U) << "what the index doesn't name isn't there";
    EXPECT_EQ(model->find("c")->data.front(), std::byte{'c'});
    EXPECT_THAT(model->file_name(*model->find("b")), EndsWith("m-1.safetensors"));
    EXPECT_THAT(model->file_name(*model->find("c")), EndsWith("m-2.safetensors"));
  }
}

TEST_F(Model, ShardsMayBeLinksElsewhere) {
  fs::create_directories(folder_ / "blobs");
  write_shard("blobs/0123", {"a"});
  fs::create_symlink("blobs/0123", folder_ / "m-1.safetensors");
  write_index(R"({"a": "m-1.safetensors"})");
  EXPECT_TRUE(SafeTensors::open(folder_));
}

TEST_F(Model, AMissingShardIsNamed) {
  write_index(R"({"a": "m-1.safetensors"})");
  EXPECT_EQ(error().code, ErrorCode::kIo);
  EXPECT_THAT(error().message, HasSubstr("m-1.safetensors"));
}

TEST_F(Model, LinksInACircleAreAnError) {
  fs::create_symlink("m-2.safetensors", folder_ / "m-1.safetensors");
  fs::create_symlink("m-1.safetensors", folder_ / "m-2.safetensors");
  write_index(R"({"a": "m-1.safetensors"})");
  EXPECT_EQ(error().code, ErrorCode::kIo);
  EXPECT_THAT(error().message, HasSubstr("m-1.safetensors: Too many levels of symbolic links"));
}

TEST_F(Model, ADanglingModelFileIsNotPassedOver) {
  write_shard("other.safetensors", {"a"});
  fs::create_symlink("gone", folder_ / "model.safetensors");
  EXPECT_EQ(error().code, ErrorCode::kIo);
}

TEST_F(Model, AFolderAsShardIsRefused) {
  fs::create_directories(folder_ / "m-1.safetensors");
  write_index(R"({"a": "m-1.safetensors"})");
  EXPECT_EQ(error().code, ErrorCode::kIo);
}

TEST_F(Model, ATensorThatItsShardLacks) {
  write_shard("m-1.safetensors", {"a"});
  write_index(R"({"a": "m-1.safetensors", "b": "m-1.safetensors"})");
  EXPECT_EQ(error().code, ErrorCode::kInvalidFile);
  EXPECT_THAT(error().message,
              EndsWith("model.safetensors.index.json: weight_map.'b': 'm-1.safetensors' has no such tensor"));
}

TEST_F(Model, ATensorInTwoShards) {
  write_shard("m-1.safetensors", {"a", "b"});
  write_shard("m-2.safetensors", {"b"});
  write_index(R"({"a": "m-1.safetensors", "b": "m-2.safetensors"})");
  EXPECT_EQ(error().code, ErrorCode::kInvalidFile);
  EXPECT_THAT(error().message, EndsWith("m-1.safetensors: 'b' at byte 65: the index says that it is in "
                                        "'m-2.safetensors'"));
}

TEST_F(Model, ABrokenShardIsNamed) {
  write("m-1.safetensors", "short");
  write_index(R"({"a": "m-1.safetensors"})");
  EXPECT_THAT(error().message, EndsWith("m-1.safetensors: header length at byte 0: needs 8 bytes, 5 are left"));
}

TEST(SafeTensors, EveryPrefixOfAFileIsAnErrorOfItsOwn) {
  const std::string bytes = safetensors({{"w", "F32", {2, 3}, std::string(24, 'x')}, {"b", "BF16", {}, "yz"}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto file = SafeTensors::parse(std::as_bytes(std::span(cut)), "cut");
    ASSERT_FALSE(file) << size;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidFile) << file.error().message;
  }
}

TEST(SafeTensors, MetadataIsRead) {
  const auto bytes =
      os::read_file(fs::path(QUERN_FIXTURES) / "corpus" / "safetensors" / "valid_metadata", 1 << 20).value();
  const auto file = SafeTensors::parse(std::as_bytes(std::span(bytes)), "file").value();
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.metadata().at("quote"), "\"\u00e9\\");
}

}  // namespace
}  // namespace quern::formats

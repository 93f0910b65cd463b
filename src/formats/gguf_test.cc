// What a parsed GGUF file hands out: values of every type, typed look-ups, tensors.
#include "quern/formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quern/os/file.h"

namespace quern::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

GgufFile open(const std::string& name) {
  auto file = GgufFile::open(std::filesystem::path(QUERN_FIXTURES) / "corpus" / "gguf" / name);
  EXPECT_TRUE(file) << file.error().message;
  return file ? *std::move(file) : GgufFile();
}

TEST(Gguf, ScalarsOfEveryType) {
  const GgufFile file = open("valid_values");
  EXPECT_EQ(file.integer("u8").value(), 200);
  EXPECT_EQ(file.integer("i8").value(), -100);
  EXPECT_EQ(file.integer("u16").value(), 60000);
  EXPECT_EQ(file.integer("i16").value(), -30000);
  EXPECT_EQ(file.integer("u32").value(), 4'000'000'000);
  EXPECT_EQ(file.integer("i32").value(), -2'000'000'000);
  EXPECT_EQ(file.integer("i64").value(), INT64_MIN);
  EXPECT_EQ(file.number("f32").value(), 0.5);
  EXPECT_EQ(file.number("f64").value(), -0.25);
  EXPECT_EQ(file.number("u8").value(), 200.0) << "integers are numbers";
  EXPECT_EQ(file.boolean("bool").value(), true);
  EXPECT_EQ(file.string("string").value(), "text");
  EXPECT_EQ(std::get<std::uint64_t>(*file.find("u64")), UINT64_MAX);
  EXPECT_EQ(file.find("none such"), nullptr);
}

TEST(Gguf, ArraysOfEveryKind) {
  const GgufFile file = open("valid_values");
  const auto array = [&](const char* key) { return file.array(key).value().value(); };
  EXPECT_THAT(array("strings").strings().value(), ElementsAre("a", "", "\xff" + std::string(1, '\0')));
  EXPECT_THAT(array("none").strings().value(), ElementsAre());
  EXPECT_THAT(array("integers").integers().value(), ElementsAre(1, -2, 3));
  EXPECT_THAT(array("integers").numbers().value(), ElementsAre(1.0, -2.0, 3.0));
  EXPECT_THAT(array("floats").numbers().value(), ElementsAre(0.0, -1.5));
  EXPECT_THAT(array("bytes").integers().value(), ElementsAre(1, 2));
  EXPECT_EQ(array("nested").count, 2U);
}

TEST(Gguf, ArraysOfAnotherKindAreErrorsThatNameThePlace) {
  const GgufFile file = open("valid_values");
  const auto array = [&](const char* key) { return file.array(key).value().value(); };
  EXPECT_THAT(array("integers").strings().error().message,
              EndsWith("valid_values: metadata 'integers' at byte 379: an array of i32, expected strings"));
  EXPECT_THAT(array("floats").integers().error().message, EndsWith("an array of f32, expected integers"));
  EXPECT_THAT(array("bools").numbers().error().message, EndsWith("an array of bool, expected numbers"));
  EXPECT_THAT(array("nested").strings().error().message, EndsWith("an array of array, expected strings"));
  EXPECT_THAT(array("huge").integers().error().message, EndsWith("an array of u64, expected integers below 2^63"));
  EXPECT_THAT(array("nan").numbers().error().message, EndsWith("an array of f32, expected finite numbers"));
}

TEST(Gguf, ArraysOutliveAMoveOfTheFile) {
  GgufFile first = open("valid_values");
  const auto array = first.array("integers").value().value();
  const GgufFile second = std::move(first);
  EXPECT_THAT(array.integers().value(), ElementsAre(1, -2, 3));
  EXPECT_EQ(array.file, second.name());
}

TEST(Gguf, LookUpsCheckTypeAndRange) {
  const GgufFile file = open("valid_values");
  EXPECT_EQ(file.integer("u8", 200, 200).value(), 200);
  EXPECT_THAT(file.integer("u8", 0, 199).error().message,
              EndsWith("metadata 'u8' at byte 32: expected an integer from 0 to 199, found 200"));
  EXPECT_THAT(file.integer("i8", 0, 9).error().message, EndsWith("expected an integer from 0 to 9, found -100"));
  EXPECT_THAT(file.integer("u64").error().message, EndsWith("found 18446744073709551615"));
  EXPECT_THAT(file.integer("f32").error().message, EndsWith("expected an integer, found a float"));
  EXPECT_THAT(file.number("f32", 1, 2).error().message, EndsWith("expected a number from 1 to 2, found 0.5"));
  EXPECT_THAT(file.number("string").error().message, EndsWith("expected a number, found a string"));
  EXPECT_THAT(file.boolean("u8").error().message, EndsWith("expected a boolean, found an unsigned integer"));
  EXPECT_THAT(file.string("bool").error().message, EndsWith("expected a string, found a boolean"));
  EXPECT_THAT(file.array("i8").error().message, EndsWith("expected an array, found a signed integer"));
}

TEST(Gguf, EveryWeightTypeIsAMatrixOfWholeBlocks) {
  const GgufFile file = open("valid_types");
  EXPECT_EQ(file.tensors().size(), 13U);
  for (const GgufTensor& tensor : file.tensors()) {
    const tensor::MatrixView view = tensor.matrix();
    EXPECT_EQ(tensor::encoding_name(view.encoding), tensor.name);
    EXPECT_EQ(view.rows, 2);
    EXPECT_TRUE(tensor::check_matrix(view)) << tensor.name;
    EXPECT_EQ(tensor.data.front(), std::byte{1}) << tensor.name;
    EXPECT_EQ(file.find_tensor(tensor.name), &tensor);
    file.drop_pages(tensor);
    EXPECT_EQ(tensor.data.front(), std::byte{1}) << "dropped pages come back";
  }
}

TEST(Gguf, ShapesAreOutermostFirstAndFoldIntoRows) {
  const GgufFile file = open("valid_alignment_64");
  const GgufTensor& second = *file.find_tensor("second");
  EXPECT_THAT(second.shape, ElementsAre(3, 2));
  EXPECT_EQ(second.data.front(), std::byte{64});
  const tensor::MatrixView first = file.find_tensor("first")->matrix();
  EXPECT_EQ(first.rows, 8);
  EXPECT_EQ(first.cols, 2);
  EXPECT_EQ(open("valid_version_2").find_tensor("a")->matrix().rows, 1) << "one dimension is one row";
  EXPECT_EQ(file.find_tensor("third"), nullptr);
}

TEST(Gguf, EveryPrefixOfAFileIsAnErrorOfItsOwn) {
  const auto bytes =
      os::read_file(std::filesystem::path(QUERN_FIXTURES) / "corpus" / "gguf" / "valid_alignment_64", 1 << 20).value();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut =
        bytes.substr(0, size);  // a copy of this size: the address sanitizer sees a read past its end
    const auto file = GgufFile::parse(std::as_bytes(std::span(cut)), "cut");
    ASSERT_FALSE(file) << size;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidFile) << file.error().message;
  }
}

TEST(Gguf, AMissingFileIsNamed) {
  const auto file = GgufFile::open("/no/such/model.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kIo);
  EXPECT_THAT(file.error().message, ::testing::HasSubstr("/no/such/model.gguf"));
}

}  // namespace
}  // namespace quern::formats

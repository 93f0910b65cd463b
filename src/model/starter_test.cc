// The starter model's real weights: every step agrees with mlx-lm, and loading keeps no second copy of them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "quern/model/loader.h"
#include "quern/ops/reference.h"
#include "quern/os/memory.h"
#include "support/golden.h"
#include "support/model_runner.h"
#include "support/starter.h"

namespace quern::model {
namespace {

constexpr std::size_t kStride = 97;  // of the values that make_starter_golden.py keeps

std::vector<float> every_kth(const std::vector<float>& values) {
  std::vector<float> kept;
  for (std::size_t i = 0; i < values.size(); i += kStride) kept.push_back(values[i]);
  return kept;
}

std::vector<float> norms(const ops::Mat& mat) {
  std::vector<float> found;
  for (std::int64_t r = 0; r < mat.rows; ++r) {
    double sum = 0.0;
    for (std::int64_t c = 0; c < mat.cols; ++c) sum += double{mat.row(r)[c]} * mat.row(r)[c];
    found.push_back(static_cast<float>(std::sqrt(sum)));
  }
  return found;
}

TEST(StarterModel, AgreesWithTheOracleAtEachStep) {
  const auto path = test::starter_model();
  if (!path) GTEST_SKIP() << test::kNoStarter;
  const auto golden = formats::SafeTensors::open(std::filesystem::path(QUERN_FIXTURES) / "models/starter.safetensors");
  ASSERT_TRUE(golden.has_value()) << golden.error().message;
  const auto device = ops::make_reference_device();
  const auto model = load_model(path->string(), *device);
  ASSERT_TRUE(model.has_value()) << model.error().message;

  const auto tokens = test::elements<std::int32_t>(*golden->find("tokens"));
  std::size_t compared = 0;
  test::ModelRunner runner(**model, *device, 64);
  runner.run(tokens, tokens.size(), [&](std::string_view name, ops::Mat values) {
    const auto* kept = golden->find(name);
    if (kept == nullptr) return;
    EXPECT_LT(test::relative_error(every_kth(test::copy(values)), test::elements<float>(*kept)), 1e-4) << name;
    const auto* lengths = golden->find(fmt::format("{}.norm", name));
    ASSERT_NE(lengths, nullptr) << name;
    EXPECT_LT(test::relative_error(norms(values), test::elements<float>(*lengths)), 1e-4) << name;
    compared += 2;
  });
  EXPECT_EQ(compared + 1, golden->tensors().size());
}

/// In a process of its own, whose peak nothing else has raised: loads and exits with 0 when the peak stayed near what
/// is resident at the end. The slack is less than the file, so that its pages can't all have been resident too.
[[noreturn, maybe_unused]] void load_and_exit(const std::string& path) {
  const std::uint64_t before = os::resident_bytes();
  const auto device = ops::make_reference_device();
  const auto model = load_model(path, *device);
  if (!model) std::exit(2);
  const std::uint64_t grown = os::peak_resident_bytes() - before;
  const std::uint64_t allowed = (*model)->weight_bytes() + (std::uint64_t{48} << 20);
  std::fprintf(stderr, "peak grew by %zu MB, weights are %zu MB\n", static_cast<std::size_t>(grown >> 20),
               (*model)->weight_bytes() >> 20);
  std::exit(grown <= allowed ? 0 : 1);
}

#if !defined(__SANITIZE_ADDRESS__)  // its shadow memory is resident too
TEST(StarterModelDeathTest, PeakDuringLoadIsNearThePackedSize) {
  const auto path = test::starter_model();
  if (!path) GTEST_SKIP() << test::kNoStarter;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load_and_exit(path->string()), testing::ExitedWithCode(0), "peak grew");
}
#endif

}  // namespace
}  // namespace quern::model

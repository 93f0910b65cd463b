// Where tests find the starter model: a GGUF file of 98 MB that isn't in the repository.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace quern::test {

/// QUERN_TEST_STARTER when set, else the file that `quern get starter` keeps under the home. Nothing when it isn't
/// there: a test then says so and skips, with `GTEST_SKIP() << kNoStarter`.
[[nodiscard]] inline std::optional<std::filesystem::path> starter_model() {
  namespace fs = std::filesystem;
  const auto variable = [](const char* name) -> std::optional<fs::path> {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return fs::path(value);
  };
  std::optional<fs::path> path = variable("QUERN_TEST_STARTER");
  if (!path) {
    std::optional<fs::path> home = variable("QUERN_HOME");
    if (!home) {
      if (const auto data = variable("XDG_DATA_HOME")) {
        home = *data / "quern";
      } else if (const auto user = variable("HOME")) {
        home = *user / ".local" / "share" / "quern";
      }
    }
    if (!home) return std::nullopt;
    path = *home / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  std::error_code error;
  if (!fs::is_regular_file(*path, error)) return std::nullopt;
  return path;
}

inline constexpr const char* kNoStarter =
    "the starter model isn't here: run `quern get starter`, or set QUERN_TEST_STARTER to the file";

}  // namespace quern::test

// Finding models.
#include "models.h"

#include <algorithm>

#include "quern/model/loader.h"
#include "starter.h"

namespace quern::app {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 3;  // models/<owner>/<name>/...

bool is_gguf(const fs::path& path) {
  std::error_code ignored;
  return path.extension() == ".gguf" && fs::is_regular_file(path, ignored);
}

bool is_model_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "config.json", ignored);
}

void collect(const fs::path& folder, const std::string& prefix, int depth, std::vector<ModelChoice>& models) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    if (name.starts_with('.')) continue;
    if (is_gguf(path)) {
      models.push_back({prefix + path.stem().string(), path.string()});
    } else if (is_model_folder(path)) {
      models.push_back({prefix + name, path.string()});
    } else if (depth > 1 && entry->is_directory(error)) {
      collect(path, prefix + name + "/", depth - 1, models);
    }
  }
}

std::string names(const std::vector<ModelChoice>& models) {
  std::vector<std::string_view> list;
  for (const ModelChoice& model : models) list.push_back(model.name);
  return fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

std::vector<ModelChoice> local_models(const store::Home& home) {
  std::vector<ModelChoice> models;
  collect(home.models(), "", kDepth, models);
  std::ranges::sort(models, {}, &ModelChoice::name);
  return models;
}

fs::path starter_path(const store::Home& home) {
  return home.models() / kStarterFile;
}

bool is_synthetic(const ModelChoice& model) {
  return model::is_synthetic(model.path);
}

Result<ModelChoice> find_model(const store::Home& home, std::string_view argument) {
  if (model::is_synthetic(argument)) return ModelChoice{std::string(argument), std::string(argument)};
  if (argument.empty() || argument == "starter") {
    const fs::path path = starter_path(home);
    if (is_gguf(path)) return ModelChoice{path.stem().string(), path.string()};
    return fail(ErrorCode::kModelNotFound, "{} isn't in {}; `quern get starter` fetches it",
                argument.empty() ? "no model was named, and the starter" : "the starter", home.models().string());
  }
  const auto models = local_models(home);
  const auto exact = std::ranges::find(models, argument, &ModelChoice::name);
  if (exact != models.end()) return *exact;

  const fs::path path(argument);
  if (is_gguf(path)) return ModelChoice{path.stem().string(), path.string()};
  if (is_model_folder(path)) return ModelChoice{fs::weakly_canonical(path).filename().string(), path.string()};
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    return fail(ErrorCode::kModelNotFound, "{} is neither a .gguf file nor a folder with a config.json", argument);
  }

  std::vector<ModelChoice> candidates;
  std::ranges::copy_if(models, std::back_inserter(candidates),
                       [&](const ModelChoice& model) { return model.name.find(argument) != std::string::npos; });
  if (candidates.size() == 1) return candidates.front();
  if (!candidates.empty())
    return fail(ErrorCode::kModelNotFound, "'{}' fits several models: {}", argument, names(candidates));
  return fail(ErrorCode::kModelNotFound, "no model '{}'; {} has {}", argument, home.models().string(),
              models.empty() ? "none (`quern get starter` fetches one)" : names(models));
}

}  // namespace quern::app

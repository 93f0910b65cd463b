// Models by name: what lies in the home, and what a model argument means.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/result.h"
#include "quern/store/home.h"

namespace quern::app {

/// A model that can be loaded.
struct ModelChoice {
  std::string name;  // what to call it
  std::string path;  // a .gguf file, a folder, or a synthetic: name
};

[[nodiscard]] bool is_synthetic(const ModelChoice& model);

/// The .gguf files and model folders (those with a config.json) under the home's models, sorted by name: the path below
/// it, without .gguf. Hidden ones are left out.
[[nodiscard]] std::vector<ModelChoice> local_models(const store::Home& home);

/// The starter's place in the home, whether it is there or not.
[[nodiscard]] std::filesystem::path starter_path(const store::Home& home);

/// What a model argument means: "" and "starter" are the starter; else a synthetic: name, the name of a model in the
/// home, a path, or a part of a name that fits just one. kModelNotFound lists the candidates, or says how to get the
/// starter.
[[nodiscard]] Result<ModelChoice> find_model(const store::Home& home, std::string_view argument);

}  // namespace quern::app

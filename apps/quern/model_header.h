// What a model's headers say, without loading it.
#pragma once

#include <cstdint>
#include <string>

#include "models.h"
#include "quern/base/result.h"
#include "quern/model/config.h"

namespace quern::app {

/// What a model's headers say.
struct ModelHeader {
  model::ModelConfig config;
  std::string quantization;  // of most of its bytes
  std::uint64_t bytes = 0;   // of its files
};

/// Reads headers only. The parsers' errors.
[[nodiscard]] Result<ModelHeader> read_header(const ModelChoice& model);

}  // namespace quern::app

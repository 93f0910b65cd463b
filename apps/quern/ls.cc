// quern ls: the models in the home, from their headers.
#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "model_header.h"
#include "models.h"
#include "quern/store/home.h"
#include "values.h"

namespace quern::app {
namespace {

using Line = std::array<std::string, 6>;

void print_table(const std::vector<Line>& lines) {
  std::array<std::size_t, 6> widths = {};
  for (const Line& line : lines) {
    for (std::size_t column = 0; column < line.size(); ++column)
      widths[column] = std::max(widths[column], line[column].size());
  }
  for (const Line& line : lines) {
    std::string text;
    for (std::size_t column = 0; column + 1 < line.size(); ++column) {
      text += fmt::format("{:<{}}  ", line[column], widths[column]);
    }
    std::printf("%s%s\n", text.c_str(), line.back().c_str());
  }
}

}  // namespace

Result<int> run_ls(const Options& options, const std::vector<std::string>&) {
  const store::Home home(options.home);
  auto listed = nlohmann::ordered_json::array();
  std::vector<Line> lines = {{"NAME", "SIZE", "ARCHITECTURE", "WEIGHTS", "CONTEXT", "PATH"}};
  for (const ModelChoice& model : local_models(home)) {
    const auto header = read_header(model);
    if (header) {
      lines.push_back({model.name, format_size(header->bytes), header->config.architecture, header->quantization,
                       std::to_string(header->config.context), model.path});
      listed.push_back({{"name", model.name},
                        {"bytes", header->bytes},
                        {"architecture", header->config.architecture},
                        {"weights", header->quantization},
                        {"context", header->config.context},
                        {"path", model.path}});
    } else {
      const std::string reason = one_line(header.error().message);
      lines.push_back({model.name, "-", "-", "-", "-", fmt::format("{} (can't be used: {})", model.path, reason)});
      listed.push_back({{"name", model.name}, {"path", model.path}, {"error", reason}});
    }
  }
  if (options.json) {
    std::printf("%s\n", listed.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else if (lines.size() == 1) {
    std::printf("no models in %s; `quern get starter` fetches one\n", home.models().c_str());
  } else {
    print_table(lines);
  }
  return 0;
}

}  // namespace quern::app

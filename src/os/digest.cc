// SHA-256 by OpenSSL.
#include "quern/os/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "quern/os/descriptor.h"
#include "quern/os/system_reason.h"

namespace quern::os {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

Result<std::string> sha256_file(const std::filesystem::path& path, const CancellationToken& cancellation) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto refused = [&](std::string_view what) {
    return fail(ErrorCode::kIo, "can't {} {}: {}", what, path.string(), system_reason(errno));
  };
  if (!file.valid()) return refused("open");
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return fail(ErrorCode::kInternal, "OpenSSL has no SHA-256");
  }
  std::vector<unsigned char> chunk(kChunkBytes);
  for (;;) {
    if (auto reason = cancellation.reason()) return fail(*std::move(reason));
    const ssize_t got = ::read(file.value(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused("read");
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), chunk.data(), static_cast<std::size_t>(got));
  }
  unsigned int size = 0;
  chunk.resize(EVP_MAX_MD_SIZE);
  EVP_DigestFinal_ex(context.get(), chunk.data(), &size);
  return fmt::format("{:02x}", fmt::join(std::span(chunk).first(size), ""));
}

}  // namespace quern::os

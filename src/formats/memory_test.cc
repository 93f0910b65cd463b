// Parsing never takes more memory than a fixed multiple of the file's size, however dense the file is.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "quern/formats/gguf.h"
#include "quern/formats/hf_config.h"
#include "quern/formats/safetensors.h"
#include "quern/os/file.h"

namespace {

std::atomic<std::size_t> live_bytes = 0;
std::atomic<std::size_t> peak_bytes = 0;

}  // namespace

// Every allocation of this program is counted. Single-threaded where it matters.
void* operator new(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += ::malloc_usable_size(memory);
  if (live_bytes > peak_bytes) peak_bytes = live_bytes.load();
  return memory;
}

void operator delete(void* memory) noexcept {
  live_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace quern::formats {
namespace {

template <class T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string text(const std::string& content) {
  return number<std::uint64_t>(content.size()) + content;
}

std::string repeat(std::size_t count, auto make) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += make(i);
  return out;
}

std::string gguf(std::uint64_t tensors, std::uint64_t keys, const std::string& rest) {
  return "GGUF" + number<std::uint32_t>(3) + number(tensors) + number(keys) + rest;
}

std::string safetensors(const std::string& header) {
  return text(header);
}

// How many bytes `parse` took at most beside the input.
template <class Parse>
std::size_t peak_of(Parse parse) {
  const std::size_t before = live_bytes;
  peak_bytes = before;
  parse();
  return peak_bytes - before;
}

std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file));
}

constexpr std::size_t kCount = 20'000;

TEST(Memory, DenseGgufFiles) {
  const auto key = [](std::size_t i) { return text(fmt::format("{:x}", i)); };
  const std::pair<const char*, std::string> files[] = {
      {"tiny keys", gguf(0, kCount, repeat(kCount, [&](auto i) { return key(i) + number<std::uint32_t>(7) + '\0'; }))},
      {"tiny tensors, one over the other", gguf(kCount, 0,
                                                repeat(kCount,
                                                       [&](auto i) {
                                                         return key(i) + number<std::uint32_t>(1) +
                                                                number<std::uint64_t>(1) + number<std::uint32_t>(0) +
                                                                number<std::uint64_t>(0);
                                                       }) +
                                                    std::string(64, '\0'))},
      {"an array of empty strings", gguf(0, 1,
                                         text("a") + number<std::uint32_t>(9) + number<std::uint32_t>(8) +
                                             number<std::uint64_t>(kCount) + std::string(kCount * 8, '\0'))},
      {"arrays in an array", gguf(0, 1,
                                  text("a") + number<std::uint32_t>(9) + number<std::uint32_t>(9) +
                                      number<std::uint64_t>(kCount) + std::string(kCount * 12, '\0'))},
  };
  for (const auto& [what, file] : files) {
    EXPECT_LE(peak_of([&] { static_cast<void>(GgufFile::parse(bytes_of(file), "dense")); }), 16 * file.size()) << what;
  }
}

TEST(Memory, DenseJson) {
  const auto join = [](const char* one) {
    return "[" + repeat(kCount, [&](auto) { return fmt::format("{},", one); }) + "0]";
  };
  const std::pair<const char*, std::string> texts[] = {
      {"numbers", join("1")},
      {"lists", join("[]")},
      {"objects", join("{}")},
      {"members", "{" + repeat(kCount, [](auto i) { return fmt::format("\"{:x}\":0,", i); }) + "\"\":0}"},
      {"tensors", "{" +
                      repeat(kCount,
                             [](auto i) {
                               return fmt::format(R"("{:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},)", i);
                             }) +
                      "\"__metadata__\":{}}"},
  };
  for (const auto& [what, json] : texts) {
    const std::string wrapped = fmt::format(R"({{"a":{}}})", json);
    const std::string header = safetensors(json);
    const std::string metadata = safetensors(fmt::format(R"({{"__metadata__":{}}})", json));
    EXPECT_LE(peak_of([&] {
                static_cast<void>(SafeTensors::parse(bytes_of(header), "dense"));
                static_cast<void>(SafeTensors::parse(bytes_of(metadata), "dense"));
                static_cast<void>(HfConfig::parse(wrapped, "dense"));
                static_cast<void>(parse_tokenizer_config(wrapped, "dense"));
                static_cast<void>(parse_shard_index(json, "dense"));
              }),
              100 * json.size())
        << what;
  }
}

TEST(Memory, HostileFilesOfTheCorpus) {
  for (const char* const kind : {"gguf", "safetensors"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(QUERN_FIXTURES) / "corpus" / kind)) {
      const std::string file = os::read_file(entry.path(), 1 << 20).value();
      EXPECT_LE(peak_of([&] {
                  static_cast<void>(GgufFile::parse(bytes_of(file), "hostile"));
                  static_cast<void>(SafeTensors::parse(bytes_of(file), "hostile"));
                }),
                65'536U)
          << entry.path();
    }
  }
}

}  // namespace
}  // namespace quern::formats

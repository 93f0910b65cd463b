// Replays a corpus: main for a fuzzer in a build without libFuzzer. Runs it once on each file of the folders given.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      if (in.bad() || bytes.size() != entry.file_size()) {
        std::fprintf(stderr, "can't read %s\n", entry.path().c_str());
        return 1;
      }
      // A copy on the heap, of exactly this size: the address sanitizer sees a read past its end.
      const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
      std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last line names the file that broke it
      LLVMFuzzerTestOneInput(input.data(), input.size());
      ++replayed;
    }
  }
  std::printf("%zu inputs replayed\n", replayed);
  return replayed > 0 ? 0 : 1;
}

// Parsing one safetensors file, and putting shards together.
#include "quern/formats/safetensors.h"

#include <algorithm>

#include "quern/formats/byte_reader.h"
#include "quern/formats/json_value.h"
#include "quern/formats/printable.h"
#include "quern/os/file.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference implementation
constexpr std::size_t kMaxDimensions = 8;
constexpr JsonLimits kHeaderLimits = {.bytes = kMaxHeaderBytes, .depth = 8, .values = 1'000'000};
constexpr JsonLimits kIndexLimits = {.bytes = std::size_t{64} << 20, .depth = 8, .values = 1'000'000};
constexpr std::size_t kMaxShards = 4096;
constexpr std::string_view kIndexName = "model.safetensors.index.json";

// A tensor and where its bytes lie in the data.
struct Placed {
  SafeTensor tensor;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  JsonField field;
};

Result<std::uint64_t> read_bytes(const JsonField& shape, const JsonField& dtype, SafeTensor& tensor) {
  QUERN_ASSIGN(const auto name, dtype.string());
  const auto known = tensor::dtype_from_name(name);
  if (!known)
    return dtype.error(ErrorCode::kUnsupportedFormat, fmt::format("dtype {} isn't supported", printable(name)));
  tensor.dtype = *known;
  QUERN_ASSIGN(const auto dimensions, shape.list(kMaxDimensions));
  std::uint64_t bytes = tensor::dtype_bytes(*known);
  for (const JsonField& dimension : dimensions) {
    QUERN_ASSIGN(const auto size, dimension.integer(0, INT64_MAX));
    tensor.shape.push_back(size);
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      return shape.invalid("the size in bytes overflows");
    }
  }
  return bytes;
}

Result<Placed> read_tensor(const JsonField& field, std::uint64_t data_bytes) {
  Placed placed{.tensor = {}, .field = field};
  placed.tensor.offset = field.value().offset;
  QUERN_ASSIGN(const auto dtype, field.at("dtype"));
  QUERN_ASSIGN(const auto shape, field.at("shape"));
  QUERN_ASSIGN(const auto bytes, read_bytes(shape, dtype, placed.tensor));
  QUERN_ASSIGN(const auto offsets, field.at("data_offsets"));
  QUERN_ASSIGN(const auto pair, offsets.list(2));
  if (pair.size() != 2) return offsets.invalid(fmt::format("{} numbers, expected begin and end", pair.size()));
  QUERN_ASSIGN(const auto begin, pair[0].integer(0, INT64_MAX));
  QUERN_ASSIGN(const auto end, pair[1].integer(0, INT64_MAX));
  placed.begin = static_cast<std::uint64_t>(begin);
  placed.end = static_cast<std::uint64_t>(end);
  if (placed.begin > placed.end || placed.end > data_bytes) {
    return offsets.invalid(fmt::format("[{}, {}] is not a part of the {} bytes of data", begin, end, data_bytes));
  }
  if (placed.end - placed.begin != bytes) {
    return offsets.invalid(fmt::format("{} bytes, but its shape and dtype take {}", placed.end - placed.begin, bytes));
  }
  return placed;
}

// The format wants the data covered without overlap and without holes, so that nothing hides in a file.
Result<void> check_cover(std::vector<Placed>& placed, std::uint64_t data_bytes, const std::string& file) {
  std::ranges::sort(placed, {}, [](const Placed& at) { return std::pair(at.begin, at.end); });
  std::uint64_t covered = 0;
  for (const Placed& at : placed) {
    if (at.begin != covered) {
      return at.field.invalid(
          fmt::format("its data begins at {}, where {} was expected: {}", at.begin, covered,
                      at.begin < covered ? "it overlaps another tensor" : "there is a hole before it"));
    }
    covered = at.end;
  }
  if (covered == data_bytes) return {};
  return fail(ErrorCode::kInvalidFile, "{}: the header at byte 8: tensors take {} of the {} bytes of data", file,
              covered, data_bytes);
}

// A shard is named by the index, which isn't trusted: only a file beside it.
bool is_shard_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

Result<fs::path> only_file(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") found.push_back(at->path());
  }
  if (error) return fail(ErrorCode::kIo, "can't list {}: {}", folder.string(), error.message());
  if (found.size() == 1) return found.front();
  return fail(ErrorCode::kInvalidFile, "{}: {} *.safetensors files and no {}", folder.string(), found.size(),
              kIndexName);
}

}  // namespace

Result<SafeTensors> SafeTensors::open(const fs::path& path) {
  std::error_code error;
  const auto open_one = [](const fs::path& file) {
    return file.extension() == ".json" ? open_index(file) : open_file(file);
  };
  if (!fs::is_directory(path, error)) return open_one(path);
  // A link that leads nowhere counts as present: to read something else instead would hide that.
  for (const std::string_view name : {kIndexName, std::string_view("model.safetensors")}) {
    if (fs::symlink_status(path / name, error).type() != fs::file_type::not_found) return open_one(path / name);
  }
  QUERN_ASSIGN(const auto file, only_file(path));
  return open_file(file);
}

Result<SafeTensors> SafeTensors::open_file(const fs::path& path) {
  QUERN_ASSIGN(auto map, os::MemoryMap::open(path));
  auto shared = std::make_shared<const os::MemoryMap>(std::move(map));
  QUERN_ASSIGN(auto file, parse(shared->bytes(), path.string()));
  file.maps_.push_back(std::move(shared));
  return file;
}

Result<SafeTensors> SafeTensors::open_index(const fs::path& path) {
  QUERN_ASSIGN(const auto json, os::read_file(path, kIndexLimits.bytes));
  QUERN_ASSIGN(const auto index, parse_shard_index(json, path.string()));
  SafeTensors all;
  all.name_ = path.string();
  for (const std::string& shard : index.shards) {
    QUERN_ASSIGN(auto part, open_file(path.parent_path() / shard));
    for (auto& [name, tensor] : part.tensors_) {
      const auto home = index.shard_of.find(name);
      if (home == index.shard_of.end()) continue;
      if (home->second != shard) {
        return fail(ErrorCode::kInvalidFile, "{}: {} at byte {}: the index says that it is in {}", part.name_,
                    printable(name), tensor.offset, printable(home->second));
      }
      tensor.file = static_cast<std::uint32_t>(all.files_.size());
      all.tensors_.emplace(name, std::move(tensor));
    }
    if (all.metadata_.empty()) all.metadata_ = std::move(part.metadata_);
    all.files_.push_back(std::move(part.name_));
    all.maps_.push_back(std::move(part.maps_.front()));
  }
  for (const auto& [name, shard] : index.shard_of) {
    if (!all.tensors_.contains(name)) {
      return fail(ErrorCode::kInvalidFile, "{}: weight_map.{}: {} has no such tensor", all.name_, printable(name),
                  printable(shard));
    }
  }
  return all;
}

Result<SafeTensors> SafeTensors::parse(std::span<const std::byte> bytes, std::string name) {
  ByteReader reader(bytes, name);
  reader.enter("header length");
  QUERN_ASSIGN(const auto length, reader.read<std::uint64_t>());
  if (length > kMaxHeaderBytes) {
    return reader.invalid(fmt::format("{} bytes, the limit is {}", length, kMaxHeaderBytes));
  }
  reader.enter("header");
  const std::size_t header_offset = reader.offset();
  QUERN_ASSIGN(const auto header, reader.take(length));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  QUERN_ASSIGN(const auto json, parse_json(text, name, kHeaderLimits, header_offset));
  const JsonField root(json, name);

  SafeTensors file;
  const auto data = bytes.subspan(reader.offset());
  QUERN_ASSIGN(const auto members, root.members());
  std::vector<Placed> placed;
  for (const auto& [key, field] : members) {
    if (key == "__metadata__") {
      if (field.is<std::nullptr_t>()) continue;  // MLX writes null for none
      QUERN_ASSIGN(const auto entries, field.members());
      for (const auto& [entry, value] : entries) {
        QUERN_ASSIGN(const auto value_text, value.string());
        file.metadata_.emplace(entry, value_text);
      }
      continue;
    }
    QUERN_ASSIGN(auto one, read_tensor(field, data.size()));
    one.tensor.data = data.subspan(one.begin, one.end - one.begin);
    file.tensors_.emplace(key, one.tensor);
    placed.push_back(std::move(one));
  }
  QUERN_TRY(check_cover(placed, data.size(), name));
  file.files_.push_back(name);
  file.name_ = std::move(name);
  return file;
}

const SafeTensor* SafeTensors::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void SafeTensors::drop_pages(const SafeTensor& tensor) const {
  if (!maps_.empty()) maps_[tensor.file]->drop(tensor.data);
}

Result<ShardIndex> parse_shard_index(std::string_view json, std::string_view name) {
  QUERN_ASSIGN(const auto root, parse_json(json, name, kIndexLimits));
  QUERN_ASSIGN(const auto map, JsonField(root, name).at("weight_map"));
  QUERN_ASSIGN(const auto members, map.members());
  ShardIndex index;
  for (const auto& [tensor, field] : members) {
    QUERN_ASSIGN(const auto shard, field.string());
    if (!is_shard_name(shard)) {
      return field.invalid(fmt::format("{} is not the name of a .safetensors file beside the index", printable(shard)));
    }
    index.shard_of.emplace(tensor, shard);
    index.shards.emplace_back(shard);
  }
  std::ranges::sort(index.shards);
  const auto repeated = std::ranges::unique(index.shards);
  index.shards.erase(repeated.begin(), repeated.end());
  if (index.shards.empty()) return map.invalid("names no tensor");
  if (index.shards.size() > kMaxShards) {
    return map.invalid(fmt::format("{} shards, the limit is {}", index.shards.size(), kMaxShards));
  }
  return index;
}

}  // namespace quern::formats

// Parsing GGUF: header, metadata, tensor descriptions, then where the tensors' bytes lie.
#include "quern/formats/gguf.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "quern/formats/byte_reader.h"
#include "quern/formats/gguf_types.h"
#include "quern/formats/printable.h"

namespace quern::formats {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kMaxKeys = 65'536;
constexpr std::uint64_t kMaxTensors = 262'144;
constexpr std::uint64_t kMaxKeyLength = 65'535;  // the format's own limit
constexpr std::uint64_t kMaxTensorNameLength = 256;
constexpr std::uint32_t kMaxDimensions = 4;
constexpr int kMaxArrayDepth = 4;
constexpr std::int64_t kDefaultAlignment = 32;
// Weights are read in place as words of up to 8 bytes, hence the least.
constexpr std::int64_t kMinAlignment = 8;
constexpr std::int64_t kMaxAlignment = std::int64_t{1} << 20;

struct Header {
  std::uint64_t tensors = 0;
  std::uint64_t keys = 0;
};

// A tensor as described: its bytes aren't placed yet.
struct Description {
  GgufTensor tensor;
  std::uint64_t offset = 0;  // from the beginning of the data
  std::uint64_t bytes = 0;
};

// A count of things that take at least `each` bytes: never more than the file could hold.
Result<std::uint64_t> read_count(ByteReader& reader, std::string field, std::uint64_t limit, std::uint64_t each) {
  reader.enter(std::move(field));
  QUERN_ASSIGN(const auto count, reader.read<std::uint64_t>());
  if (count > limit) return reader.invalid(fmt::format("{}, the limit is {}", count, limit));
  if (count > reader.remaining() / each) {
    return reader.invalid(fmt::format("{}, but the {} bytes that follow can't hold them", count, reader.remaining()));
  }
  return count;
}

Result<Header> read_header(ByteReader& reader, const std::string& file) {
  reader.enter("magic");
  QUERN_ASSIGN(const auto magic, reader.read<std::uint32_t>());
  if (magic != kMagic) return reader.invalid(fmt::format("0x{:08x}, expected 'GGUF' (0x{:08x})", magic, kMagic));
  reader.enter("version");
  QUERN_ASSIGN(const auto version, reader.read<std::uint32_t>());
  if (version != 0 && (version & 0xffffU) == 0) {
    return fail(ErrorCode::kUnsupportedFormat,
                "{}: version at byte 4: a big-endian file, only little-endian ones are read", file);
  }
  if (version != 2 && version != 3) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: version at byte 4: GGUF version {}, versions 2 and 3 are read",
                file, version);
  }
  Header header;
  QUERN_ASSIGN(header.tensors, read_count(reader, "tensor count", kMaxTensors, 8 + 4 + 8 + 4 + 8));
  QUERN_ASSIGN(header.keys, read_count(reader, "metadata count", kMaxKeys, 8 + 4 + 1));
  return header;
}

// Steps over `count` strings, checking each length.
Result<void> skip_strings(ByteReader& reader, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (auto string = reader.read_string(UINT64_MAX); !string) return fail(std::move(string).error());
  }
  return {};
}

Result<GgufArray> read_array(ByteReader& reader, std::string_view key, const std::string& file, int depth) {
  if (depth > kMaxArrayDepth) return reader.invalid(fmt::format("arrays nested deeper than {} levels", kMaxArrayDepth));
  QUERN_ASSIGN(const auto type, reader.read<std::uint32_t>());
  const GgufValueType* const known = gguf_value_type(type);
  if (known == nullptr) return reader.invalid(fmt::format("unknown element type {}", type));
  QUERN_ASSIGN(const auto count, reader.read<std::uint64_t>());
  if (count > reader.remaining() / known->min_bytes) {
    return reader.invalid(
        fmt::format("{} elements of type {}, but {} bytes are left", count, known->name, reader.remaining()));
  }
  GgufArray array{.element = known->element,
                  .wire_type = static_cast<std::uint8_t>(type),
                  .count = count,
                  .bytes = {},
                  .file = file,
                  .key = key,
                  .offset = reader.offset()};
  ByteReader elements = reader;
  if (known->element == GgufArray::Element::kString) {
    QUERN_TRY(skip_strings(elements, count));
  } else if (known->element == GgufArray::Element::kArray) {
    for (std::uint64_t i = 0; i < count; ++i) {
      QUERN_ASSIGN([[maybe_unused]] const auto inner, read_array(elements, key, file, depth + 1));
    }
  } else {
    QUERN_ASSIGN([[maybe_unused]] const auto skipped, elements.take(count * known->min_bytes));
  }
  QUERN_ASSIGN(array.bytes, reader.take(elements.offset() - reader.offset()));
  return array;
}

Result<GgufValue> read_value(ByteReader& reader, std::string_view key, const std::string& file) {
  QUERN_ASSIGN(const auto type, reader.read<std::uint32_t>());
  const GgufValueType* const known = gguf_value_type(type);
  if (known == nullptr) return reader.invalid(fmt::format("unknown value type {}", type));
  switch (known->element) {
    case GgufArray::Element::kString: {
      QUERN_ASSIGN(const auto text, reader.read_string(UINT64_MAX));
      return text;
    }
    case GgufArray::Element::kArray: {
      QUERN_ASSIGN(auto array, read_array(reader, key, file, 1));
      return array;
    }
    case GgufArray::Element::kBool: {
      QUERN_ASSIGN(const auto value, reader.read<std::uint8_t>());
      if (value > 1) return reader.invalid(fmt::format("a boolean of {}, expected 0 or 1", value));
      return value == 1;
    }
    default:
      break;
  }
  QUERN_ASSIGN(const auto bytes, reader.take(known->min_bytes));
  switch (known->element) {
    case GgufArray::Element::kUnsigned:
      return gguf_unsigned(*known, bytes.data());
    case GgufArray::Element::kSigned:
      return gguf_signed(*known, bytes.data());
    default:
      return gguf_float(*known, bytes.data());
  }
}

Result<std::map<std::string_view, GgufValue>> read_metadata(ByteReader& reader, std::uint64_t count,
                                                            const std::string& file) {
  std::map<std::string_view, GgufValue> metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    reader.enter(fmt::format("metadata[{}] key", i));
    QUERN_ASSIGN(const auto key, reader.read_string(kMaxKeyLength));
    if (key.empty()) return reader.invalid("an empty key");
    if (metadata.contains(key)) return reader.invalid(fmt::format("{} is given twice", printable(key)));
    reader.enter(fmt::format("metadata {}", printable(key)));
    QUERN_ASSIGN(const auto value, read_value(reader, key, file));
    metadata.emplace(key, value);
  }
  return metadata;
}

Result<void> read_shape(ByteReader& reader, std::vector<std::int64_t>& shape, std::uint64_t& elements) {
  QUERN_ASSIGN(const auto dimensions, reader.read<std::uint32_t>());
  if (dimensions == 0 || dimensions > kMaxDimensions) {
    return reader.invalid(fmt::format("{} dimensions, expected 1 to {}", dimensions, kMaxDimensions));
  }
  shape.resize(dimensions);
  elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    QUERN_ASSIGN(const auto size, reader.read<std::uint64_t>());
    if (size == 0 || size > static_cast<std::uint64_t>(INT64_MAX)) {
      return reader.invalid(fmt::format("dimension {} is {}, expected 1 to {}", i, size, INT64_MAX));
    }
    if (__builtin_mul_overflow(elements, size, &elements) || elements > static_cast<std::uint64_t>(INT64_MAX)) {
      return reader.invalid(fmt::format("the product of the dimensions up to {} overflows", i));
    }
    shape[dimensions - 1 - i] = static_cast<std::int64_t>(size);
  }
  return {};
}

Result<Description> read_description(ByteReader& reader, std::map<std::string_view, std::size_t>& index,
                                     const std::string& file) {
  Description description;
  GgufTensor& tensor = description.tensor;
  reader.enter(fmt::format("tensor[{}] name", index.size()));
  QUERN_ASSIGN(tensor.name, reader.read_string(kMaxTensorNameLength));
  if (tensor.name.empty()) return reader.invalid("an empty name");
  if (!index.emplace(tensor.name, index.size()).second) {
    return reader.invalid(fmt::format("{} is given twice", printable(tensor.name)));
  }
  reader.enter(fmt::format("tensor {}", printable(tensor.name)));
  std::uint64_t elements = 0;
  QUERN_TRY(read_shape(reader, tensor.shape, elements));
  QUERN_ASSIGN(const auto type, reader.read<std::uint32_t>());
  const GgufWeightType* const known = gguf_weight_type(type);
  if (known == nullptr) {
    return fail(ErrorCode::kUnsupportedFormat, "{}: {} at byte {}: weight type {} isn't supported", file,
                reader.field(), reader.offset() - sizeof(type), gguf_type_name(type));
  }
  tensor.encoding = known->encoding;
  const std::int64_t cols = tensor.shape.back();
  if (cols % known->block != 0) {
    return reader.invalid(fmt::format("rows of {} elements aren't whole blocks of {} of type {}", cols, known->block,
                                      gguf_type_name(type)));
  }
  if (__builtin_mul_overflow(elements / static_cast<std::uint64_t>(known->block), known->block_bytes,
                             &description.bytes)) {
    return reader.invalid("the size in bytes overflows");
  }
  QUERN_ASSIGN(description.offset, reader.read<std::uint64_t>());
  return description;
}

// Gives each tensor its bytes: aligned, inside the file, none of them shared.
Result<std::vector<GgufTensor>> place(std::span<const std::byte> bytes, std::size_t data_begin, std::uint64_t alignment,
                                      std::vector<Description> descriptions, const std::string& file) {
  const auto error = [&](const Description& at, std::string_view what) {
    const auto where = reinterpret_cast<const std::byte*>(at.tensor.name.data()) - bytes.data();
    return fail(ErrorCode::kInvalidFile, "{}: tensor {} at byte {}: {}", file, printable(at.tensor.name), where, what);
  };
  const std::size_t data_bytes = data_begin < bytes.size() ? bytes.size() - data_begin : 0;
  for (Description& at : descriptions) {
    if (at.offset % alignment != 0) {
      return error(at, fmt::format("its offset {} is not a multiple of the alignment {}", at.offset, alignment));
    }
    if (at.offset > data_bytes || at.bytes > data_bytes - at.offset) {
      return error(at, fmt::format("{} bytes at offset {} of the data, which has {} (it begins at byte {})", at.bytes,
                                   at.offset, data_bytes, data_begin));
    }
    at.tensor.data =
        bytes.subspan(data_begin + static_cast<std::size_t>(at.offset), static_cast<std::size_t>(at.bytes));
  }
  std::vector<std::size_t> order(descriptions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return descriptions[i].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Description& before = descriptions[order[i - 1]];
    const Description& at = descriptions[order[i]];
    if (before.offset + before.bytes > at.offset) {
      return error(at, fmt::format("offset {} of the data lies inside tensor {}, which ends at {}", at.offset,
                                   printable(before.tensor.name), before.offset + before.bytes));
    }
  }
  std::vector<GgufTensor> tensors;
  tensors.reserve(descriptions.size());
  for (Description& at : descriptions) tensors.push_back(std::move(at.tensor));
  return tensors;
}

}  // namespace

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  QUERN_ASSIGN(auto map, os::MemoryMap::open(path));
  auto shared = std::make_shared<const os::MemoryMap>(std::move(map));
  QUERN_ASSIGN(auto file, parse(shared->bytes(), path.string()));
  file.map_ = std::move(shared);
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.name_ = std::make_shared<const std::string>(std::move(name));
  file.bytes_ = bytes;
  ByteReader reader(bytes, *file.name_);
  QUERN_ASSIGN(const auto header, read_header(reader, *file.name_));
  QUERN_ASSIGN(file.metadata_, read_metadata(reader, header.keys, *file.name_));

  QUERN_ASSIGN(const auto parts, file.integer("split.count", 0, UINT16_MAX));
  if (parts.value_or(1) > 1) {
    return file.wrong("split.count", fmt::format("one of {} parts of a split model, merge them first", *parts),
                      ErrorCode::kUnsupportedFormat);
  }
  QUERN_ASSIGN(const auto given, file.integer("general.alignment", kMinAlignment, kMaxAlignment));
  const auto alignment = static_cast<std::uint64_t>(given.value_or(kDefaultAlignment));
  if (!std::has_single_bit(alignment)) {
    return file.wrong("general.alignment", fmt::format("{} is not a power of two", alignment));
  }

  std::vector<Description> descriptions;
  for (std::uint64_t i = 0; i < header.tensors; ++i) {
    QUERN_ASSIGN(auto description, read_description(reader, file.index_, *file.name_));
    descriptions.push_back(std::move(description));
  }
  const std::size_t data_begin = (reader.offset() + alignment - 1) / alignment * alignment;
  QUERN_ASSIGN(file.tensors_, place(bytes, data_begin, alignment, std::move(descriptions), *file.name_));
  return file;
}

}  // namespace quern::formats

// The table of element types.
#include "quern/tensor/dtype.h"

#include <array>

#include "quern/base/check.h"

namespace quern::tensor {
namespace {

struct Row {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Row, 13> kTable = {{{"F64", 8},
                                         {"F32", 4},
                                         {"F16", 2},
                                         {"BF16", 2},
                                         {"I64", 8},
                                         {"I32", 4},
                                         {"I16", 2},
                                         {"I8", 1},
                                         {"U64", 8},
                                         {"U32", 4},
                                         {"U16", 2},
                                         {"U8", 1},
                                         {"BOOL", 1}}};

}  // namespace

std::size_t dtype_bytes(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  QUERN_CHECK(index < kTable.size());
  return kTable[index].bytes;
}

std::string_view dtype_name(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  QUERN_CHECK(index < kTable.size());
  return kTable[index].name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace quern::tensor

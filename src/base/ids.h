// StrongId: integers that can't be mixed up.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace quern {

/// An integer id of its own type: `using RequestId = StrongId<struct RequestTag>;`
template <class Tag, class Value = std::uint64_t>
struct StrongId {
  Value value{};
  friend auto operator<=>(const StrongId&, const StrongId&) = default;
};

using RequestId = StrongId<struct RequestTag>;
using RowId = StrongId<struct RowTag>;

}  // namespace quern

template <class Tag, class Value>
struct std::hash<quern::StrongId<Tag, Value>> {
  std::size_t operator()(const quern::StrongId<Tag, Value>& id) const noexcept { return std::hash<Value>{}(id.value); }
};

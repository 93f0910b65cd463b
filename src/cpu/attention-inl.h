// Attention over pages, in blocks of ops::kKeyBlock keys at absolute positions. A query's arithmetic in a block depends
// on the block's keys only; queries in a tile share converted keys and values, never sums.

inline constexpr int kPagesInBlock = ops::kKeyBlock / ops::kPageTokens;
static_assert(ops::kPageTokens == kLanes, "one register holds a page's scores");

/// A block's scores, then weights: [query][key].
struct BlockScores {
  float at[kTileQueries][ops::kKeyBlock];
};

/// Scores of one page's keys for kCount queries from `first` on: even and odd dimensions summed apart, in order.
template <int kCount>
QUERN_INLINE void score_page(const AttentionTile& tile, int first, const std::uint16_t* keys, int slot,
                             BlockScores& scores) {
  F even[kCount];
  F odd[kCount];
  QUERN_UNROLL
  for (int i = 0; i < kCount; ++i) even[i] = odd[i] = zero();
  std::int32_t d = 0;
  for (; d + 2 <= tile.head_dim; d += 2) {
    const F key0 = load_f16(keys + d * kLanes);
    const F key1 = load_f16(keys + (d + 1) * kLanes);
    QUERN_UNROLL
    for (int i = 0; i < kCount; ++i) {
      even[i] = fma(set(tile.q[first + i][d]), key0, even[i]);
      odd[i] = fma(set(tile.q[first + i][d + 1]), key1, odd[i]);
    }
  }
  if (d < tile.head_dim) {
    const F key = load_f16(keys + d * kLanes);
    QUERN_UNROLL
    for (int i = 0; i < kCount; ++i) even[i] = fma(set(tile.q[first + i][d]), key, even[i]);
  }
  QUERN_UNROLL
  for (int i = 0; i < kCount; ++i) {
    F score = set(tile.scale) * (even[i] + odd[i]);
    if (tile.softcap > 0.0F) score = set(tile.softcap) * tanh(score / set(tile.softcap));
    store(scores.at[first + i] + slot, score);
  }
}

/// The block's values times the weights of kCount queries, keys [first_key, last_key) in order. sums [kCount][D].
template <int kCount>
QUERN_INLINE void weigh_values(const AttentionTile& tile, int first, const std::int32_t* pages, int first_key,
                               int last_key, const BlockScores& weights, float (*sums)[ops::kMaxHeadDim]) {
  for (std::int32_t d = 0; d < tile.head_dim; d += 2 * kLanes) {
    const std::int64_t left = tile.head_dim - d;
    F low[kCount];
    F high[kCount];
    QUERN_UNROLL
    for (int i = 0; i < kCount; ++i) low[i] = high[i] = zero();
    for (int key = first_key; key < last_key; ++key) {
      const std::uint16_t* value =
          tile.values + pages[key / ops::kPageTokens] * tile.page_stride + (key % ops::kPageTokens) * tile.head_dim + d;
      const bool whole = left >= 2 * kLanes;
      const F value0 = whole ? load_f16(value) : load_f16(value, left);
      const F value1 = whole           ? load_f16(value + kLanes)
                       : left > kLanes ? load_f16(value + kLanes, left - kLanes)
                                       : zero();
      QUERN_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const F weight = set(weights.at[first + i][key]);
        low[i] = fma(weight, value0, low[i]);
        high[i] = fma(weight, value1, high[i]);
      }
    }
    QUERN_UNROLL
    for (int i = 0; i < kCount; ++i) {
      store(sums[first + i] + d, low[i]);
      store(sums[first + i] + d + kLanes, high[i]);
    }
  }
}

/// Calls `function` for all queries, kQueryTile at a time.
#define QUERN_FOR_QUERIES(function, ...)                              \
  do {                                                                \
    int query = 0;                                                    \
    for (; query + kQueryTile <= tile.queries; query += kQueryTile) { \
      function<kQueryTile>(tile, query, __VA_ARGS__);                 \
    }                                                                 \
    if (kQueryTile > 2 && query + 3 == tile.queries) {                \
      function<3>(tile, query, __VA_ARGS__);                          \
    } else if (kQueryTile > 2 && query + 2 == tile.queries) {         \
      function<2>(tile, query, __VA_ARGS__);                          \
    } else if (query < tile.queries) {                                \
      function<1>(tile, query, __VA_ARGS__);                          \
    }                                                                 \
  } while (false)

struct BlockSum {
  float largest;
  float total;
};

/// Scores of keys [first, last) to exp(score - largest); 0 for the other keys of pages [first_page, last_page).
QUERN_INLINE BlockSum exponentiate(float* scores, std::int64_t first, std::int64_t last, int first_page,
                                   int last_page) {
  const F nothing = set(-__builtin_inff());
  F most = nothing;
  for (int p = first_page; p < last_page; ++p) {
    const int slot = p * kLanes;
    most = max(most, keep(load(scores + slot), first - slot, last - slot, nothing));
  }
  const float top = largest(most);
  F total = zero();
  for (int p = first_page; p < last_page; ++p) {
    const int slot = p * kLanes;
    const F weight = keep(exp(load(scores + slot) - set(top)), first - slot, last - slot, zero());
    store(scores + slot, weight);
    total = total + weight;
  }
  return {top, sum(total)};
}

QUERN_INLINE float exp_of(float x) {
  float lanes[kLanes];
  store(lanes, exp(set(x)));
  return lanes[0];
}

QUERN_INLINE void merge_sums(float* state, BlockSum block, const float* values, std::int32_t head_dim) {
  const float top = state[0] > block.largest ? state[0] : block.largest;
  const float before = exp_of(state[0] - top);
  const float after = exp_of(block.largest - top);
  state[0] = top;
  state[1] = state[1] * before + block.total * after;
  for (std::int32_t d = 0; d < head_dim; d += kLanes) {
    float* at = state + kStateHeader + d;
    const std::int64_t left = head_dim - d;
    store(at, fma(load(values + d, left), set(after), load(at, left) * set(before)), left);
  }
}

static void merge(float* state, const float* later, std::int32_t head_dim) {
  if (later[1] != 0.0F) merge_sums(state, {later[0], later[1]}, later + kStateHeader, head_dim);
}

static void finish(const float* state, std::int32_t head_dim, float* out) {
  for (std::int32_t d = 0; d < head_dim; d += kLanes) {
    const std::int64_t left = head_dim - d;
    store(out + d, load(state + kStateHeader + d, left) / set(state[1]), left);
  }
}

static void attend_block(const AttentionTile& tile, std::int64_t block, float* states) {
  const std::int64_t start = block * ops::kKeyBlock;
  std::int64_t first[kTileQueries];  // keys that a query sees, from the block's start
  std::int64_t last[kTileQueries];
  std::int64_t least = ops::kKeyBlock;
  std::int64_t most = 0;
  for (int i = 0; i < tile.queries; ++i) {
    first[i] = tile.first[i] > start ? tile.first[i] - start : 0;
    last[i] = tile.last[i] < start + ops::kKeyBlock ? tile.last[i] - start : ops::kKeyBlock;
    if (first[i] >= last[i]) continue;
    if (first[i] < least) least = first[i];
    if (last[i] > most) most = last[i];
  }
  if (least >= most) return;
  const std::int32_t* pages = tile.pages + block * kPagesInBlock;
  const int first_page = static_cast<int>(least / kLanes);
  const int last_page = static_cast<int>((most + kLanes - 1) / kLanes);
  BlockScores scores;
  for (int p = first_page; p < last_page; ++p) {
    QUERN_FOR_QUERIES(score_page, tile.keys + pages[p] * tile.page_stride, p * kLanes, scores);
  }
  BlockSum sums[kTileQueries];
  for (int i = 0; i < tile.queries; ++i) {
    sums[i] = exponentiate(scores.at[i], first[i], last[i], first_page, last_page);
  }
  float values[kTileQueries][ops::kMaxHeadDim];
  QUERN_FOR_QUERIES(weigh_values, pages, static_cast<int>(least), static_cast<int>(most), scores, values);
  const std::int64_t stride = kStateHeader + tile.head_dim;
  for (int i = 0; i < tile.queries; ++i) {
    if (first[i] < last[i]) merge_sums(states + i * stride, sums[i], values[i], tile.head_dim);
  }
}

static void attend(const AttentionTile& tile, std::int64_t first_block, std::int64_t last_block, float* states) {
  for (std::int64_t block = first_block; block < last_block; ++block) attend_block(tile, block, states);
}

#undef QUERN_FOR_QUERIES

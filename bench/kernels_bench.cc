// Rates of the kernels on the starter's shapes: products and attention. QUERN_BENCH_ISA and QUERN_BENCH_THREADS choose.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "quern/base/check.h"
#include "quern/cpu/cpu_device.h"
#include "quern/cpu/test_data.h"

namespace quern::cpu {
namespace {

std::unique_ptr<ops::Device> bench_device() {
  const char* isa = std::getenv("QUERN_BENCH_ISA");
  const char* threads = std::getenv("QUERN_BENCH_THREADS");
  auto device = make_cpu_device({.isa = isa != nullptr ? isa : "auto",
                                 .threads = threads != nullptr ? std::atoi(threads) : 0,
                                 .compute = Compute::kInt8});
  QUERN_CHECK(device.has_value());
  return std::move(device).value();
}

/// Operands: encoding, N, K, T. Reports multiply-adds and weight bytes per second.
void linear(benchmark::State& state) {
  const auto device = bench_device();
  const test::WeightKind kind{.encoding = static_cast<tensor::Encoding>(state.range(0))};
  const std::int64_t n = state.range(1);
  const std::int64_t k = state.range(2);
  const std::int64_t tokens = state.range(3);
  const test::RandomMatrix w(kind, n, k, 1);
  const std::vector<ops::WeightPart> parts = {w.part()};
  // Several copies, so that decode reads weights that no cache holds.
  std::vector<std::unique_ptr<ops::Weight>> weights;
  for (std::int64_t bytes = 0; bytes < (64 << 20); bytes += static_cast<std::int64_t>(weights.back()->bytes())) {
    weights.push_back(std::move(device->pack(parts)).value());
  }
  const test::Activations x(tokens, k, 2);
  const test::Activations y(tokens, n);
  std::size_t next = 0;
  for (auto _ : state) {
    device->linear(*weights[next++ % weights.size()], x.mat, y.mat, {});
    benchmark::ClobberMemory();
  }
  const auto calls = static_cast<double>(state.iterations());
  state.counters["op/s"] =
      benchmark::Counter(2.0 * static_cast<double>(n * k * tokens) * calls, benchmark::Counter::kIsRate);
  state.counters["weight B/s"] =
      benchmark::Counter(static_cast<double>(weights[0]->bytes()) * calls, benchmark::Counter::kIsRate);
  state.SetLabel(kind.name());
}
void linear_args(benchmark::internal::Benchmark* bench) {
  const auto q4 = static_cast<std::int64_t>(tensor::Encoding::kQ4_1);
  const auto q8 = static_cast<std::int64_t>(tensor::Encoding::kQ8_0);
  for (const std::int64_t tokens : {1, 8, 32, 512}) {
    bench->Args({q4, 960, 576, tokens});
    bench->Args({q4, 3072, 576, tokens});
    bench->Args({q4, 576, 1536, tokens});
  }
  bench->Args({q8, 49152, 576, 1});
}
BENCHMARK(linear)->ArgNames({"encoding", "N", "K", "T"})->Apply(linear_args)->UseRealTime();

/// Operands: keys held, new tokens.
void attention(benchmark::State& state) {
  const auto device = bench_device();
  const ops::AttentionShape shape{.heads = 9, .kv_heads = 3, .head_dim = 64, .scale = 0.125F};
  const auto held = static_cast<std::int32_t>(state.range(0));
  const auto tokens = static_cast<std::int32_t>(state.range(1));
  const test::Sequences past({{0, held + tokens}});
  const test::Sequences rows({{held, tokens}});
  test::Pages pages(*device, past.page_count, shape);
  const test::Activations fill(held + tokens, 576, 1);
  const ops::Mat kv = fill.mat.columns(0, 192);
  device->rope_store(past.batch(), {}, shape, fill.mat, kv, kv, pages.layer);
  const test::Activations q(tokens, 576, 2);
  const test::Activations out(tokens, 576);
  for (auto _ : state) {
    device->attention(rows.batch(), shape, q.mat, pages.layer, out.mat);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(attention)
    ->ArgNames({"held", "T"})
    ->Args({128, 1})
    ->Args({2048, 1})
    ->Args({0, 512})
    ->Args({2048, 512})
    ->UseRealTime();

/// Operands: encoding, N, K.
void pack(benchmark::State& state) {
  const auto device = bench_device();
  const test::WeightKind kind{.encoding = static_cast<tensor::Encoding>(state.range(0))};
  const test::RandomMatrix w(kind, state.range(1), state.range(2), 1);
  const std::vector<ops::WeightPart> parts = {w.part()};
  for (auto _ : state) benchmark::DoNotOptimize(device->pack(parts));
  state.counters["weights/s"] =
      benchmark::Counter(static_cast<double>(state.range(1) * state.range(2)) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
  state.SetLabel(kind.name());
}
BENCHMARK(pack)
    ->ArgNames({"encoding", "N", "K"})
    ->Args({static_cast<std::int64_t>(tensor::Encoding::kQ4_1), 3072, 576})
    ->Args({static_cast<std::int64_t>(tensor::Encoding::kQ8_0), 49152, 576})
    ->Args({static_cast<std::int64_t>(tensor::Encoding::kBf16), 3072, 576})
    ->Args({static_cast<std::int64_t>(tensor::Encoding::kQ4K), 4096, 2048})
    ->UseRealTime();

}  // namespace
}  // namespace quern::cpu

BENCHMARK_MAIN();

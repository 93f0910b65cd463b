// WeightLoader: collects what a graph needs, then packs it on several threads.
#include "quern/model/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "quern/base/check.h"
#include "quern/os/cpu_features.h"
#include "quern/os/thread.h"

namespace quern::model {
namespace {

bool same_form(const tensor::MatrixView& a, const tensor::MatrixView& b) {
  return a.encoding == b.encoding && a.bits == b.bits && a.group == b.group && a.scale_dtype == b.scale_dtype;
}

}  // namespace

void StackedLinear::apply(ops::Device& device, ops::Mat x, ops::Mat y, float scale, bool accumulate) const {
  std::int64_t first = 0;
  for (const auto& piece : pieces_) {
    ops::LinearOptions options{.scale = scale, .accumulate = accumulate};
    if (!bias_.empty()) {
      options.bias = std::span(bias_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(piece->rows()));
    }
    device.linear(*piece, x, y.columns(first, piece->rows()), options);
    first += piece->rows();
  }
}

std::size_t StackedLinear::bytes() const {
  std::size_t total = bias_.size() * sizeof(float);
  for (const auto& piece : pieces_) total += piece->bytes();
  return total;
}

const ops::Weight& StackedLinear::weight() const {
  QUERN_CHECK(pieces_.size() == 1);
  return *pieces_.front();
}

std::int64_t WeightLoader::LinearRequest::elements() const {
  std::int64_t rows = 0;
  for (const ModuleRows& part : modules) rows += part.rows;
  return rows * cols;
}

void WeightLoader::linear(StackedLinear& out, std::vector<ModuleRows> modules, std::int64_t cols, bool bias) {
  linears_.push_back({&out, std::move(modules), cols, bias});
}

void WeightLoader::vector(std::vector<float>& out, std::string name, std::int64_t size) {
  vectors_.push_back({&out, std::move(name), size});
}

Result<void> WeightLoader::pack(const LinearRequest& request) {
  std::vector<SourceMatrix> matrices;
  for (const ModuleRows& part : request.modules) {
    QUERN_ASSIGN(matrices.emplace_back(), source_.matrix(part.module, part.rows, request.cols));
    if (request.bias) {
      QUERN_ASSIGN(const std::vector<float> bias, source_.vector(part.module + ".bias", part.rows));
      request.out->bias_.insert(request.out->bias_.end(), bias.begin(), bias.end());
    }
  }
  for (std::size_t first = 0; first < matrices.size();) {
    std::vector<ops::WeightPart> parts;
    std::size_t last = first;
    for (; last < matrices.size() && same_form(matrices[first].view, matrices[last].view); ++last) {
      parts.push_back({matrices[last].view, matrices[last].row_order});
    }
    auto weight = device_.pack(parts);
    if (!weight) {
      Error error = std::move(weight).error();
      error.message = fmt::format("{}: {}", request.modules[first].module, error.message);
      return fail(std::move(error));
    }
    request.out->pieces_.push_back(std::move(weight).value());
    first = last;
  }
  return {};
}

Result<void> WeightLoader::run(const LoadProgress& progress, const CancellationToken& cancellation) {
  for (const VectorRequest& request : vectors_) {
    QUERN_ASSIGN(*request.out, source_.vector(request.name, request.size));
  }
  std::int64_t total = 0;
  for (const LinearRequest& request : linears_) total += request.elements();

  std::atomic<std::size_t> next = 0;
  std::atomic<std::int64_t> done = 0;
  std::mutex mutex;
  std::optional<Error> failure;
  const auto work = [&](const LoadProgress& report) {
    for (std::size_t i = next++; i < linears_.size(); i = next++) {
      Result<void> result;
      if (const auto reason = cancellation.reason()) {
        result = fail(*reason);
      } else {
        result = pack(linears_[i]);
      }
      if (!result) {
        next = linears_.size();
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::move(result).error();
        return;
      }
      done += linears_[i].elements();
      if (report) report(static_cast<double>(done) / static_cast<double>(total));
    }
  };
  {
    std::vector<os::Thread> threads;
    for (int i = 1; i < os::usable_cores(); ++i) {
      threads.emplace_back(fmt::format("quern-load-{}", i), [&] { work({}); });
    }
    work(progress);
  }
  if (failure) return fail(*std::move(failure));
  if (progress) progress(1.0);
  return {};
}

}  // namespace quern::model

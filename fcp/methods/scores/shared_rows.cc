#include "fcp/methods/scores/shared_rows.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "fcp/base/infinity.h"
#include "fcp/base/memory.h"
#include "fcp/nn/runtime/parallel_alone.h"

namespace fcp {
namespace {

constexpr size_t kThreadRows = 32;  // at least, of one thread

// Calls work(share, first row, rows) of consecutive shares, each on a thread of its own.
void on_shares(int64_t rows, size_t shares,
               const std::function<void(size_t, int64_t, int64_t)>& work) {
  parallel_alone(shares, 1, shares, [&](size_t begin, size_t end) {
    const MemoryShare part(shares);
    for (size_t share = begin; share < end; ++share) {
      const auto count = static_cast<int64_t>(shares), number = static_cast<int64_t>(share);
      const int64_t first = rows * number / count, last = rows * (number + 1) / count;
      work(share, first, last - first);
    }
  });
}

// Unions of shares that need fewer intervals get empty ones, as rows of one share do.
void even_out_parts(std::vector<Regions>& shares) {
  int64_t most = 0;
  for (const Regions& share : shares) {
    if (!share.parts.defined()) return;
    most = std::max(most, share.parts.size(2));
  }
  for (Regions& share : shares) {
    std::vector<int64_t> shape = share.parts.sizes().vec();
    shape[2] = most - shape[2];
    torch::Tensor empty = torch::full(shape, kInfinity, share.parts.options());
    empty.select(3, 1).neg_();
    share.parts = torch::cat({share.parts, empty}, 2);
  }
}

Regions joined(std::vector<Regions> shares) {
  even_out_parts(shares);
  const auto all = [&](torch::Tensor Regions::*part) {
    std::vector<torch::Tensor> tensors;
    for (const Regions& share : shares) tensors.push_back(share.*part);
    return tensors[0].defined() ? torch::cat(tensors) : torch::Tensor();
  };
  return {all(&Regions::prediction), all(&Regions::lower), all(&Regions::upper),
          all(&Regions::members),    all(&Regions::parts), shares[0].side,
          all(&Regions::factor),     all(&Regions::radius)};
}

class SharedRows : public Score {
 public:
  explicit SharedRows(std::unique_ptr<Score> score) : score_(std::move(score)) {}

  int64_t sides() const override { return score_->sides(); }
  int64_t targets() const override { return score_->targets(); }
  int64_t classes() const override { return score_->classes(); }

  std::vector<double> score(const torch::Tensor& features,
                            const torch::Tensor& truth) const override {
    const size_t shares = shares_of(features);
    if (shares < 2) return score_->score(features, truth);
    std::vector<std::vector<double>> parts(shares);
    on_shares(features.size(0), shares, [&](size_t share, int64_t first, int64_t rows) {
      parts[share] = score_->score(features.narrow(0, first, rows), truth.narrow(0, first, rows));
    });
    std::vector<double> scores;
    for (const std::vector<double>& part : parts) {
      scores.insert(scores.end(), part.begin(), part.end());
    }
    return scores;
  }

  Regions region(const torch::Tensor& features, const torch::Tensor& radius) const override {
    const size_t shares = shares_of(features);
    if (shares < 2) return score_->region(features, radius);
    std::vector<Regions> parts(shares);
    on_shares(features.size(0), shares, [&](size_t share, int64_t first, int64_t rows) {
      parts[share] = score_->region(features.narrow(0, first, rows), radius.narrow(0, first, rows));
    });
    return joined(std::move(parts));
  }

  std::vector<Regions> regions(const torch::Tensor& features,
                               std::span<const torch::Tensor> radii) const override {
    const size_t shares = shares_of(features);
    if (shares < 2) return score_->regions(features, radii);
    std::vector<std::vector<Regions>> parts(radii.size(), std::vector<Regions>(shares));
    on_shares(features.size(0), shares, [&](size_t share, int64_t first, int64_t rows) {
      std::vector<torch::Tensor> own;
      for (const torch::Tensor& radius : radii) own.push_back(radius.narrow(0, first, rows));
      std::vector<Regions> found = score_->regions(features.narrow(0, first, rows), own);
      for (size_t i = 0; i < found.size(); ++i) parts[i][share] = std::move(found[i]);
    });
    std::vector<Regions> all;
    for (std::vector<Regions>& part : parts) all.push_back(joined(std::move(part)));
    return all;
  }

 private:
  static size_t shares_of(const torch::Tensor& features) {
    const auto rows = static_cast<size_t>(features.size(0));
    return std::min(rows / kThreadRows, static_cast<size_t>(at::get_num_threads()));
  }

  std::unique_ptr<Score> score_;
};

}  // namespace

std::unique_ptr<Score> share_rows(std::unique_ptr<Score> score,
                                  const std::shared_ptr<const Network>& head) {
  if (!head->device().is_cpu() || head->fixed_batch() > 1) return score;
  return std::make_unique<SharedRows>(std::move(score));
}

}  // namespace fcp

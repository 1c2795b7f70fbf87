#include "fcp/methods/scores/score.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "fcp/base/memory.h"
#include "fcp/base/special_numbers.h"
#include "fcp/methods/scores/ellipsoid.h"
#include "fcp/nn/runtime/batch_free.h"
#include "fcp/nn/runtime/parallel_alone.h"

namespace fcp {

std::vector<Regions> Score::regions(const torch::Tensor& features,
                                    std::span<const torch::Tensor> radii) const {
  const RunOnce once;
  std::vector<Regions> found;
  for (const torch::Tensor& radius : radii) found.push_back(region(features, radius));
  return found;
}

namespace {

// How far the bound lies beyond a number.
torch::Tensor beyond(const Regions& regions, const torch::Tensor& number) {
  return regions.side == BoundSide::kUpper ? regions.upper - number : number - regions.lower;
}

}  // namespace

torch::Tensor region_lengths(const Regions& regions) {
  if (regions.side != BoundSide::kBoth) return beyond(regions, regions.prediction);
  if (!regions.parts.defined()) return (regions.upper - regions.lower).clamp_min(0);
  return (regions.parts.select(3, 1) - regions.parts.select(3, 0)).clamp_min(0).sum(2);
}

torch::Tensor region_volumes(const Regions& regions) {
  if (regions.factor.defined()) return ellipsoid_volumes(regions);
  return region_lengths(regions).log().mean(1).exp();
}

torch::Tensor region_costs(const Regions& regions, const torch::Tensor& truth) {
  if (regions.side == BoundSide::kBoth) return region_lengths(regions);
  return beyond(regions, truth.to(regions.lower.device(), torch::kDouble));
}

double miss_penalty(const Level& level, BoundSide side) {
  return (side == BoundSide::kBoth ? 2 : 1) / level.value();
}

torch::Tensor region_distances(const Regions& regions, const torch::Tensor& truth) {
  const torch::Tensor y = truth.to(regions.lower.device(), torch::kDouble);
  if (!regions.parts.defined()) {
    return torch::maximum(regions.lower - y, y - regions.upper).clamp_min(0);
  }
  const torch::Tensor one = y.unsqueeze(2);  // [N, K, 1]
  return torch::maximum(regions.parts.select(3, 0) - one, one - regions.parts.select(3, 1))
      .clamp_min(0)
      .amin(2);
}

torch::Tensor in_regions(const Regions& regions, const torch::Tensor& truth) {
  const torch::Tensor y = truth.to(regions.lower.device(), torch::kDouble);
  if (!regions.parts.defined()) {
    const torch::Tensor in_box = (regions.lower <= y).logical_and(y <= regions.upper).all(1);
    return regions.factor.defined() ? in_box.logical_and(in_ellipsoids(regions, y)) : in_box;
  }
  const torch::Tensor one = y.unsqueeze(2);  // [N, K, 1]
  return (regions.parts.select(3, 0) <= one)
      .logical_and(one <= regions.parts.select(3, 1))
      .any(2)
      .all(1);
}

Regions regions_of_unions(const torch::Tensor& prediction,
                          const std::vector<std::vector<Interval>>& unions) {
  size_t most = 1;
  for (const std::vector<Interval>& parts : unions) most = std::max(most, parts.size());
  Regions regions{prediction,
                  torch::full_like(prediction, kInfinity),
                  torch::full_like(prediction, -kInfinity),
                  {},
                  {}};
  regions.parts = torch::empty(
      {prediction.size(0), prediction.size(1), static_cast<int64_t>(most), 2}, torch::kDouble);
  double* part = regions.parts.data_ptr<double>();
  for (size_t i = 0; i < unions.size(); ++i) {
    for (size_t j = 0; j < most; ++j) {
      const bool there = j < unions[i].size();
      *part++ = there ? unions[i][j].lower : kInfinity;
      *part++ = there ? unions[i][j].upper : -kInfinity;
    }
    if (unions[i].empty()) continue;
    regions.lower.data_ptr<double>()[i] = unions[i].front().lower;
    regions.upper.data_ptr<double>()[i] = unions[i].back().upper;
  }
  return regions;
}

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

#include "fcp/training/heads.h"

#include <algorithm>
#include <cmath>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/training/loss.h"

namespace fcp {
namespace {

constexpr double kSpreadLevel = 0.85;  // of the quantile of |residual| that is the spread
constexpr double kFloorShare = 0.1;    // of the mean spread
constexpr double kLeastShare = 1e-3;   // of the mean |residual|: smaller ones count as this
constexpr double kLeastStep = 1e-3;    // of the mean step between the quantiles of all rows
constexpr double kFarOutside = 1.0;    // how far beyond the fitted targets, in their deviations

using HeadTensors = std::vector<torch::Tensor>;

torch::Tensor float_matrix(const torch::Tensor& values) {
  const int64_t rows = values.size(0);
  return values.detach()
      .to(torch::kCPU, torch::kFloat)
      .reshape({rows, rows == 0 ? 1 : values.numel() / rows});
}

// The columns of each member that vary most, in order; undefined where all are kept.
torch::Tensor widest_columns(const std::vector<HeadMember>& members, int64_t most) {
  const int64_t columns = float_matrix(members[0].features).size(1);
  if (columns <= most) return {};
  HeadTensors kept;
  for (size_t e = 0; e < members.size(); ++e) {
    const torch::Tensor variance = float_matrix(members[e].features).var(0, false);
    const torch::Tensor best = std::get<1>(variance.topk(most));
    kept.push_back(std::get<0>(best.sort()) + static_cast<int64_t>(e) * columns);
  }
  return torch::cat(kept);
}

// The members as matrices, their features reduced to the columns.
std::vector<PerceptronRows> rows_of_members(const std::vector<HeadMember>& members,
                                            const torch::Tensor& columns) {
  std::vector<PerceptronRows> rows;
  const auto count = static_cast<int64_t>(members.size());
  for (int64_t e = 0; e < count; ++e) {
    const HeadMember& member = members[static_cast<size_t>(e)];
    torch::Tensor features = float_matrix(member.features);
    if (columns.defined()) {
      const int64_t kept = columns.numel() / count;
      features = features.index_select(1, columns.narrow(0, e * kept, kept) - e * features.size(1));
    }
    rows.push_back({features, float_matrix(member.prediction), float_matrix(member.residual),
                    member.groups, member.weight});
  }
  return rows;
}

void check_heads(const std::vector<HeadMember>& members) {
  if (members.empty()) fail("heads need the rows of at least one network");
  for (const HeadMember& member : members) {
    const int64_t rows = member.features.size(0);
    if (member.prediction.size(0) != rows || member.residual.size(0) != rows) {
      fail("heads: ", rows, " features, ", member.prediction.size(0), " predictions and ",
           member.residual.size(0), " residuals; expected as many of each");
    }
    for (const torch::Tensor* values : {&member.features, &member.prediction, &member.residual}) {
      if (!values->isfinite().all().item<bool>()) {
        fail("heads: a feature, prediction or residual is not finite");
      }
    }
  }
}

// The mean of the numbers of each column that are there, 0 of a column without any: [1, D].
torch::Tensor present_means(const torch::Tensor& matrix) {
  const torch::Tensor there = matrix.isnan().logical_not();
  const torch::Tensor sum = torch::where(there, matrix, torch::zeros_like(matrix))
                                .to(torch::kDouble)
                                .sum(0, /*keepdim=*/true);
  return (sum / there.sum(0, /*keepdim=*/true).clamp_min(1)).to(torch::kFloat);
}

torch::Tensor filled(const torch::Tensor& matrix, const torch::Tensor& fill) {
  return fill.defined() ? torch::where(matrix.isnan(), fill, matrix) : matrix;
}

// As perceptrons read them: [E, N, D] and [E, N, K].
std::pair<torch::Tensor, torch::Tensor> head_inputs(const torch::Tensor& features,
                                                    const torch::Tensor& prediction,
                                                    const torch::Tensor& columns, int64_t members,
                                                    const torch::Tensor& fill = {}) {
  torch::Tensor flat = float_matrix(features);
  if (columns.defined()) flat = flat.index_select(1, columns);
  flat = filled(flat, fill);
  const torch::Tensor u = flat.reshape({flat.size(0), members, -1}).transpose(0, 1);
  return {u.contiguous(), float_matrix(prediction).unsqueeze(0).expand({members, -1, -1})};
}

// log max(|residual|, a thousandth of its mean), [n, K].
torch::Tensor log_sizes(const torch::Tensor& residual) {
  const torch::Tensor size = residual.abs().to(torch::kDouble);
  const torch::Tensor mean = size.mean(0, true);
  const torch::Tensor unit = torch::where(mean > 0, mean, torch::ones_like(mean));
  return torch::maximum(size, unit * kLeastShare).log();
}

struct LogScale {
  torch::Tensor shift, scale, least, most;  // [1, K]
};

LogScale scale_of(const torch::Tensor& values) {
  const torch::Tensor deviation = values.std(0, false, true);
  const torch::Tensor scale =
      torch::where(deviation > 1e-9, deviation, torch::ones_like(deviation));
  return {values.mean(0, true).to(torch::kFloat), scale.to(torch::kFloat),
          (values.amin(0, true) - kFarOutside * scale).to(torch::kFloat),
          (values.amax(0, true) + kFarOutside * scale).to(torch::kFloat)};
}

// The pinball loss of each row at one level, [E, N]; target [E, N, K].
torch::Tensor level_loss(const torch::Tensor& output, const torch::Tensor& target, double level) {
  const torch::Tensor above = target - output;
  return torch::maximum(above * level, above * (level - 1)).mean(2);
}

// The quantile of each column, [K].
torch::Tensor column_quantile(const torch::Tensor& values, double level) {
  const torch::Tensor sorted = std::get<0>(values.sort(0));
  return sorted[static_cast<int64_t>(level * static_cast<double>(sorted.size(0) - 1))];
}

// σ of each member without the floor, [E, N, K] (or [N, K] of one).
torch::Tensor raw_spread(const torch::Tensor& output, const torch::Tensor& shift,
                         const torch::Tensor& scale, const torch::Tensor& least,
                         const torch::Tensor& most) {
  return torch::minimum(torch::maximum(shift + scale * output, least), most).exp();
}

// The spread head; returns the spread of each member's own rows, [n, K], without the floor.
HeadTensors fit_spread(const std::vector<PerceptronRows>& members, const HeadOptions& options,
                       FeatureHeads& heads) {
  std::vector<PerceptronRows> rows = members;
  HeadTensors shifts, scales, least, most;
  for (PerceptronRows& member : rows) {
    const torch::Tensor logs = log_sizes(member.target);
    const LogScale scale = scale_of(logs);
    member.target = ((logs - scale.shift) / scale.scale).to(torch::kFloat);
    shifts.push_back(scale.shift);
    scales.push_back(scale.scale);
    least.push_back(scale.least);
    most.push_back(scale.most);
  }
  const auto loss = [](const torch::Tensor& output, const torch::Tensor& target) {
    return level_loss(output, target, kSpreadLevel);
  };
  HeadTensors targets;
  for (const PerceptronRows& member : rows) targets.push_back(member.target);
  heads.spread =
      fit_perceptrons(rows, column_quantile(torch::cat(targets), kSpreadLevel), loss, options.fit);
  heads.spread_shift = torch::stack(shifts);
  heads.spread_scale = torch::stack(scales);
  heads.spread_least = torch::stack(least);
  heads.spread_most = torch::stack(most);
  HeadTensors spreads;
  for (size_t e = 0; e < rows.size(); ++e) {
    const auto at = static_cast<int64_t>(e);
    spreads.push_back(
        raw_spread(heads.spread.member_forward(at, rows[e].features, rows[e].prediction), shifts[e],
                   scales[e], least[e], most[e]));
  }
  return spreads;
}

}  // namespace

FeatureHeads fit_heads(const std::vector<HeadMember>& members, const HeadOptions& options) {
  const torch::NoGradGuard no_gradients;
  check_heads(members);
  if (options.quantiles < 3 || options.quantiles % 2 == 0) {
    fail("heads: the number of quantiles is ", options.quantiles,
         ", expected an odd one from 3 on");
  }
  FeatureHeads heads;
  heads.columns = widest_columns(members, options.most_columns);
  std::vector<PerceptronRows> rows = rows_of_members(members, heads.columns);
  const HeadTensors spreads = fit_spread(rows, options, heads);
  const int64_t outputs = rows[0].target.size(1);
  heads.spread_floor =
      (torch::cat(spreads).to(torch::kDouble).mean(0) * kFloorShare).to(torch::kFloat);
  heads.spread_floor = heads.spread_floor.reshape({1, 1, outputs});
  HeadTensors relative;
  for (size_t e = 0; e < rows.size(); ++e) {
    rows[e].target = rows[e].target / (spreads[e] + heads.spread_floor[0]);
    relative.push_back(rows[e].target);
  }
  const torch::Tensor grid = marginal_quantiles(torch::cat(relative), options.quantiles);  // [K, Q]
  const double step = (grid.select(1, -1) - grid.select(1, 0)).mean().item<double>() /
                      static_cast<double>(options.quantiles - 1);
  heads.step_floor = torch::full({1}, step > 0 ? step * kLeastStep : 1e-6, torch::kFloat);
  const torch::Tensor floor = heads.step_floor;
  const auto loss = [&](const torch::Tensor& output, const torch::Tensor& target) {
    return pinball_loss(rising_quantiles(output, outputs, floor), target);
  };
  PerceptronFit fit = options.fit;
  fit.seed += 1;
  heads.quantiles = fit_perceptrons(rows, rising_start(grid, floor), loss, fit);
  if (!options.factors) return heads;
  const torch::Tensor start = factor_start(torch::cat(relative));
  const auto likelihood = [&](const torch::Tensor& output, const torch::Tensor& target) {
    return factor_loss(output, start, target);
  };
  fit.seed += 1;
  heads.factors = fit_perceptrons(rows, start, likelihood, fit);
  heads.factor_start = start;
  return heads;
}

namespace {

// [E, N, K], the floor included.
torch::Tensor member_spreads(const FeatureHeads& heads, const torch::Tensor& u,
                             const torch::Tensor& p) {
  return raw_spread(heads.spread.forward(u, p), heads.spread_shift, heads.spread_scale,
                    heads.spread_least, heads.spread_most) +
         heads.spread_floor;
}

// Beyond what it answers for 98 % of the rows it was fitted to, a rectifier extrapolates, and a
// score that grows fast would turn that into regions without end.
void keep_to_usual_answers(Rectifier& rectifier, const PerceptronRows& rows) {
  const torch::Tensor answers =
      rectifier.shift + rectifier.scale * rectifier.network.forward(rows.features.unsqueeze(0),
                                                                    rows.prediction.unsqueeze(0));
  const auto bound = [&](double share) {
    return std::get<0>(answers.kthvalue(
        1 + static_cast<int64_t>(share * static_cast<double>(answers.size(1) - 1)), 1, true));
  };
  rectifier.least = torch::maximum(rectifier.least, bound(0.01));
  rectifier.most = torch::minimum(rectifier.most, bound(0.99));
}

}  // namespace

torch::Tensor FeatureHeads::spread_of(const torch::Tensor& features,
                                      const torch::Tensor& prediction) const {
  const auto [u, p] = head_inputs(features, prediction, columns, spread.members());
  return member_spreads(*this, u, p).mean(0);
}

torch::Tensor FeatureHeads::quantiles_of(const torch::Tensor& features,
                                         const torch::Tensor& prediction) const {
  const auto [u, p] = head_inputs(features, prediction, columns, spread.members());
  const torch::Tensor unit = member_spreads(*this, u, p);  // [E, N, K]
  const torch::Tensor grid = rising_quantiles(quantiles.forward(u, p), unit.size(2), step_floor);
  return (grid * unit.unsqueeze(3)).mean(0).flatten(1);
}

torch::Tensor FeatureHeads::factors_of(const torch::Tensor& features,
                                       const torch::Tensor& prediction) const {
  const auto [u, p] = head_inputs(features, prediction, columns, spread.members());
  const torch::Tensor unit = member_spreads(*this, u, p).unsqueeze(3);  // [E, N, K, 1]
  return (cholesky_factors(factors.forward(u, p), factor_start) * unit).mean(0).flatten(1);
}

Rectifier fit_rectifier(const HeadMember& member, double quantile, bool difference,
                        const HeadOptions& options) {
  const torch::NoGradGuard no_gradients;
  if (!(quantile > 0 && quantile < 1)) {
    fail("rectifier: the quantile is ", quantile, ", expected a number between 0 and 1");
  }
  torch::Tensor scores = float_matrix(member.residual).to(torch::kDouble);
  const torch::Tensor finite = scores.masked_select(scores.isfinite());
  if (finite.numel() == 0 || scores.isnan().any().item<bool>()) {
    fail("rectifier: the scores it is fitted to are infinite or not numbers");
  }
  scores = scores.clamp(finite.min(), finite.max());
  HeadMember own = member;
  own.residual = scores;
  Rectifier made;
  if (options.missing) {
    own.features = float_matrix(member.features);
    made.fill = present_means(own.features);
    own.features = filled(own.features, made.fill);
  }
  check_heads({own});
  made.difference = difference;
  made.columns = widest_columns({own}, options.most_columns);
  if (made.fill.defined() && made.columns.defined()) {
    made.fill = made.fill.index_select(1, made.columns);
  }
  std::vector<PerceptronRows> rows = rows_of_members({own}, made.columns);
  const torch::Tensor target = difference ? scores : log_sizes(scores);
  const LogScale scale = scale_of(target);
  rows[0].target = ((target - scale.shift) / scale.scale).to(torch::kFloat);
  const auto loss = [&](const torch::Tensor& output, const torch::Tensor& y) {
    return level_loss(output, y, quantile);
  };
  made.network =
      fit_perceptrons(rows, column_quantile(rows[0].target, quantile), loss, options.fit);
  made.shift = scale.shift.unsqueeze(0);
  made.scale = scale.scale.unsqueeze(0);
  made.least = scale.least.unsqueeze(0);
  made.most = scale.most.unsqueeze(0);
  keep_to_usual_answers(made, rows[0]);
  return made;
}

torch::Tensor Rectifier::answer(const torch::Tensor& features,
                                const torch::Tensor& prediction) const {
  const auto [u, p] = head_inputs(features, prediction, columns, 1, fill);
  const torch::Tensor value =
      torch::minimum(torch::maximum(shift + scale * network.forward(u, p), least), most);
  return (difference ? value : value.exp()).squeeze(0);
}

}  // namespace fcp

#include "fcp/training/perceptrons.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/data/split.h"
#include "fcp/nn/runtime/single_thread.h"

namespace fcp {
namespace {

using TensorList = std::vector<torch::Tensor>;

torch::Tensor standardised(const torch::Tensor& x, const torch::Tensor& mean,
                           const torch::Tensor& deviation) {
  return ((x - mean) / deviation).clamp(-kFeatureClip, kFeatureClip);
}

// [1, columns]; 1 where a column hardly varies beside the others.
torch::Tensor column_deviation(const torch::Tensor& x) {
  const torch::Tensor deviation = x.to(torch::kDouble).std(0, /*unbiased=*/false, true);
  const torch::Tensor least = deviation.mean() * 1e-4;
  return torch::where(deviation > least, deviation, torch::ones_like(deviation)).to(torch::kFloat);
}

torch::Tensor uniform_weights(Random& random, const std::vector<int64_t>& shape, double reach) {
  torch::Tensor values = torch::empty(shape, torch::kFloat);
  float* data = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(reach * (2 * random.uniform() - 1));
  }
  return values;
}

torch::Tensor hidden_product(const TensorList& weights, const torch::Tensor& u,
                             const torch::Tensor& p) {
  const torch::Tensor hidden =
      torch::relu(torch::bmm(u, weights[0]) + torch::bmm(p, weights[1]) + weights[2]);
  return torch::bmm(hidden, weights[3]) + weights[4];
}

// Decoupled weight decay (Loshchilov and Hutter, 2019) on the matrices, not on biases.
class AdamW {
 public:
  AdamW(TensorList parameters, double decay) : parameters_(std::move(parameters)), decay_(decay) {
    for (const torch::Tensor& parameter : parameters_) {
      first_.push_back(torch::zeros_like(parameter));
      second_.push_back(torch::zeros_like(parameter));
    }
  }

  void step(const TensorList& gradients, double rate) {
    const torch::NoGradGuard no_gradients;
    ++steps_;
    const double bias1 = 1 - std::pow(0.9, steps_), bias2 = 1 - std::pow(0.999, steps_);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      torch::Tensor& parameter = parameters_[i];
      first_[i].mul_(0.9).add_(gradients[i], 0.1);
      second_[i].mul_(0.999).addcmul_(gradients[i], gradients[i], 0.001);
      const bool matrix = parameter.size(1) > 1;
      if (matrix) parameter.mul_(1 - rate * decay_);
      parameter.addcdiv_(first_[i], (second_[i] / bias2).sqrt_().add_(1e-8), -rate / bias1);
    }
  }

 private:
  TensorList parameters_, first_, second_;
  double decay_;
  int64_t steps_ = 0;
};

// The rows of the members after standardising, in a random order, those held out last.
struct ShuffledRows {
  TensorList features, prediction, target, weight;
  std::vector<int64_t> training;  // rows that are fitted

  int64_t fewest() const { return *std::min_element(training.begin(), training.end()); }
};

torch::Tensor index_of(const std::vector<size_t>& order) {
  const std::vector<int64_t> signed_order(order.begin(), order.end());
  return torch::tensor(signed_order, torch::kLong);
}

// The order of a member's rows. Where they have groups, the number of those that are fitted is
// moved to the end of the group in which it falls.
std::vector<size_t> shuffled_rows(const PerceptronRows& member, Random& random, int64_t& training) {
  const auto count = static_cast<size_t>(member.features.size(0));
  if (member.groups.empty()) return random.permutation(count);
  GroupedOrder order = grouped_order(member.groups, random.bits());
  auto end = static_cast<size_t>(training);
  while (end < count && order.first[end] != end) ++end;
  training = static_cast<int64_t>(end);
  return std::move(order.rows);
}

ShuffledRows shuffled(const std::vector<PerceptronRows>& members, const Perceptrons& made,
                      double holdout, Random& random) {
  ShuffledRows rows;
  for (size_t e = 0; e < members.size(); ++e) {
    const auto at = static_cast<int64_t>(e);
    const int64_t count = members[e].features.size(0);
    const auto held = static_cast<int64_t>(std::ceil(holdout * static_cast<double>(count)));
    int64_t training = std::max<int64_t>(1, count - held);
    const torch::Tensor order = index_of(shuffled_rows(members[e], random, training));
    rows.features.push_back(standardised(members[e].features.index_select(0, order),
                                         made.feature_mean[at], made.feature_deviation[at]));
    rows.prediction.push_back(standardised(members[e].prediction.index_select(0, order),
                                           made.prediction_mean[at],
                                           made.prediction_deviation[at]));
    rows.target.push_back(members[e].target.index_select(0, order));
    const torch::Tensor& weight = members[e].weight;
    rows.weight.push_back(weight.defined() ? weight.index_select(0, order) : torch::ones({count}));
    rows.training.push_back(training);
  }
  return rows;
}

// A number of epochs for which the cost stays about the same from 10,000 rows of 512 features on.
int64_t epochs_for(const ShuffledRows& rows, int64_t hidden) {
  double numbers = 0;
  for (const torch::Tensor& u : rows.features) numbers += static_cast<double>(u.numel());
  const double affordable = 5e10 / (4 * numbers * static_cast<double>(hidden) + 1);
  return static_cast<int64_t>(std::clamp(affordable, 12.0, 60.0));
}

// What each member loses on the rows it holds out, on its training rows where it holds out none.
std::vector<double> holdout_losses(const TensorList& weights, const ShuffledRows& rows,
                                   const PerceptronLoss& loss) {
  const torch::NoGradGuard no_gradients;
  std::vector<double> losses;
  for (size_t e = 0; e < rows.features.size(); ++e) {
    const int64_t count = rows.features[e].size(0);
    const int64_t first = rows.training[e] < count ? rows.training[e] : 0;
    const auto part = [&](const torch::Tensor& all) {
      return all.narrow(0, first, count - first).unsqueeze(0);
    };
    TensorList own;
    for (const torch::Tensor& weight : weights) {
      own.push_back(weight.narrow(0, static_cast<int64_t>(e), 1));
    }
    const torch::Tensor output =
        hidden_product(own, part(rows.features[e]), part(rows.prediction[e]));
    const torch::Tensor weight = part(rows.weight[e]);
    const torch::Tensor sum = (loss(output, part(rows.target[e])) * weight).sum();
    losses.push_back((sum / weight.sum()).item<double>());
  }
  return losses;
}

// The best weights so far, member by member.
class BestWeights {
 public:
  BestWeights(const TensorList& weights, std::vector<double> losses) : losses_(std::move(losses)) {
    for (const torch::Tensor& weight : weights) kept_.push_back(weight.detach().clone());
  }

  bool improve(const TensorList& weights, const std::vector<double>& losses) {
    const torch::NoGradGuard no_gradients;
    bool better = false;
    for (size_t e = 0; e < losses.size(); ++e) {
      if (!(losses[e] < losses_[e])) continue;
      better = true;
      losses_[e] = losses[e];
      for (size_t i = 0; i < kept_.size(); ++i) {
        kept_[i][static_cast<int64_t>(e)].copy_(weights[i][static_cast<int64_t>(e)]);
      }
    }
    return better;
  }

  const TensorList& kept() const { return kept_; }

 private:
  std::vector<double> losses_;
  TensorList kept_;
};

// One batch of every member, stacked: rows [first, first + count) of the members' orders.
torch::Tensor stacked(const TensorList& rows, const TensorList& orders, int64_t first,
                      int64_t count) {
  TensorList parts;
  for (size_t e = 0; e < rows.size(); ++e) {
    parts.push_back(rows[e].index_select(0, orders[e].narrow(0, first, count)));
  }
  return torch::stack(parts);
}

TensorList train_weights(TensorList weights, const ShuffledRows& rows, const PerceptronLoss& loss,
                         const PerceptronFit& options, Random& random) {
  for (torch::Tensor& weight : weights) weight.requires_grad_();
  BestWeights best(weights, holdout_losses(weights, rows, loss));
  AdamW optimiser(weights, options.weight_decay);
  const int64_t batch = std::clamp<int64_t>(rows.fewest() / 8, 1, options.batch);
  constexpr double kWorthSharing = 1e8;
  const bool too_short = static_cast<double>(batch * weights[0].numel()) < kWorthSharing;
  const SingleThread one_thread(too_short);
  const int64_t steps = rows.fewest() / batch, epochs = epochs_for(rows, options.hidden);
  int64_t since_better = 0;
  for (int64_t epoch = 0; epoch < epochs && since_better < options.patience; ++epoch) {
    TensorList orders;
    for (const int64_t count : rows.training) {
      orders.push_back(index_of(random.permutation(static_cast<size_t>(count))));
    }
    for (int64_t step = 0; step < steps; ++step) {
      check_interrupted();
      const torch::AutoGradMode with_gradients(true);
      const torch::Tensor output =
          hidden_product(weights, stacked(rows.features, orders, step * batch, batch),
                         stacked(rows.prediction, orders, step * batch, batch));
      const torch::Tensor losses = loss(output, stacked(rows.target, orders, step * batch, batch));
      const torch::Tensor total =
          (losses * stacked(rows.weight, orders, step * batch, batch)).mean(1).sum();
      const double done = static_cast<double>(epoch * steps + step);
      const double rate =
          options.rate * (0.5 + 0.5 * std::cos(M_PI * done / static_cast<double>(epochs * steps)));
      optimiser.step(torch::autograd::grad({total}, {weights.begin(), weights.end()}), rate);
    }
    since_better =
        best.improve(weights, holdout_losses(weights, rows, loss)) ? 0 : since_better + 1;
  }
  return best.kept();
}

void check_members(const std::vector<PerceptronRows>& members) {
  if (members.empty()) fail("heads need the rows of at least one network");
  for (const PerceptronRows& member : members) {
    if (member.features.size(0) < 2) {
      fail("heads need at least 2 rows for each network, found ", member.features.size(0));
    }
    if (member.features.size(1) != members[0].features.size(1) ||
        member.prediction.size(1) != members[0].prediction.size(1)) {
      fail("heads of several networks need as many features of each; found ",
           members[0].features.size(1), " and ", member.features.size(1));
    }
  }
}

}  // namespace

torch::Tensor Perceptrons::forward(const torch::Tensor& u, const torch::Tensor& p) const {
  const torch::NoGradGuard no_gradients;
  return hidden_product(
      {feature_weight, prediction_weight, hidden_bias, output_weight, output_bias},
      standardised(u, feature_mean, feature_deviation),
      standardised(p, prediction_mean, prediction_deviation));
}

torch::Tensor Perceptrons::member_forward(int64_t member, const torch::Tensor& u,
                                          const torch::Tensor& p) const {
  const torch::NoGradGuard no_gradients;
  TensorList own;
  for (const torch::Tensor& weight :
       {feature_weight, prediction_weight, hidden_bias, output_weight, output_bias}) {
    own.push_back(weight.narrow(0, member, 1));
  }
  return hidden_product(
             own, standardised(u, feature_mean[member], feature_deviation[member]).unsqueeze(0),
             standardised(p, prediction_mean[member], prediction_deviation[member]).unsqueeze(0))
      .squeeze(0);
}

Perceptrons fit_perceptrons(const std::vector<PerceptronRows>& members, const torch::Tensor& start,
                            const PerceptronLoss& loss, const PerceptronFit& options) {
  check_members(members);
  Random random(options.seed);
  Perceptrons made;
  TensorList means, deviations, own_means, own_deviations;
  for (const PerceptronRows& member : members) {
    means.push_back(member.features.to(torch::kDouble).mean(0, true).to(torch::kFloat));
    deviations.push_back(column_deviation(member.features));
    own_means.push_back(member.prediction.to(torch::kDouble).mean(0, true).to(torch::kFloat));
    own_deviations.push_back(column_deviation(member.prediction));
  }
  made.feature_mean = torch::stack(means);
  made.feature_deviation = torch::stack(deviations);
  made.prediction_mean = torch::stack(own_means);
  made.prediction_deviation = torch::stack(own_deviations);
  const auto count = static_cast<int64_t>(members.size());
  const int64_t columns = members[0].features.size(1), outputs = members[0].prediction.size(1);
  const double reach = 1 / std::sqrt(static_cast<double>(columns + outputs));
  const ShuffledRows rows = shuffled(members, made, options.holdout, random);
  const TensorList weights =
      train_weights({uniform_weights(random, {count, columns, options.hidden}, reach),
                     uniform_weights(random, {count, outputs, options.hidden}, reach),
                     uniform_weights(random, {count, 1, options.hidden}, reach),
                     torch::zeros({count, options.hidden, start.numel()}),
                     start.to(torch::kFloat).reshape({1, 1, -1}).repeat({count, 1, 1})},
                    rows, loss, options, random);
  made.feature_weight = weights[0];
  made.prediction_weight = weights[1];
  made.hidden_bias = weights[2];
  made.output_weight = weights[3];
  made.output_bias = weights[4];
  return made;
}

}  // namespace fcp

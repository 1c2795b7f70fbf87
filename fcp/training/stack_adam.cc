#include "fcp/training/stack_adam.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <ATen/Parallel.h>
#include <torch/types.h>

namespace fcp {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

void adam_tensors(torch::Tensor parameters, const torch::Tensor& gradient, torch::Tensor mean,
                  torch::Tensor square, double rate, double root) {
  mean.mul_(kBeta1).add_(gradient, 1 - kBeta1);
  square.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  parameters.addcdiv_(mean, square.sqrt().mul_(root).add_(kEpsilon), -rate);
}

}  // namespace

StackAdam::StackAdam(const torch::Tensor& parameters, int64_t scales, double scale_factor)
    : scales_(scales),
      scale_factor_(scale_factor),
      mean_(torch::zeros_like(parameters)),
      square_(torch::zeros_like(parameters)) {}

void StackAdam::step(torch::Tensor& parameters, const torch::Tensor& gradient, double rate) {
  ++steps_;
  const double t = static_cast<double>(steps_);
  const double corrected = rate / (1 - std::pow(kBeta1, t));
  const double root = 1 / std::sqrt(1 - std::pow(kBeta2, t));
  const int64_t networks = parameters.size(0), columns = parameters.size(1);
  const auto part = [](const torch::Tensor& tensor, int64_t first, int64_t count) {
    return tensor.narrow(1, first, count);
  };
  if (!parameters.is_cpu()) {
    for (const auto& [first, count, own] :
         {std::tuple(int64_t{0}, scales_, corrected * scale_factor_),
          std::tuple(scales_, columns - scales_, corrected)}) {
      adam_tensors(part(parameters, first, count), part(gradient, first, count),
                   part(mean_, first, count), part(square_, first, count), own, root);
    }
    return;
  }
  const auto pass = [&](int64_t first, int64_t count, double own) {
    adam_pass(parameters.data_ptr<float>() + first, gradient.data_ptr<float>() + first,
              mean_.data_ptr<float>() + first, square_.data_ptr<float>() + first, count,
              static_cast<float>(own), static_cast<float>(root));
  };
  constexpr int64_t kGrain = 1 << 15;
  at::parallel_for(0, networks * columns, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {  // pieces of one network's scales or of the rest
      const int64_t column = begin % columns;
      const bool scale = column < scales_;
      const int64_t stop = std::min(end, begin - column + (scale ? scales_ : columns));
      pass(begin, stop - begin, scale ? corrected * scale_factor_ : corrected);
      begin = stop;
    }
  });
}

void StackAdam::keep(const torch::Tensor& networks) {
  mean_ = mean_.index_select(0, networks);
  square_ = square_.index_select(0, networks);
}

}  // namespace fcp

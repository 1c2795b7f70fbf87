#include "fcp/methods/scores/outputs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/scores/head_outputs.h"
#include "fcp/methods/scores/interval_ends.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {
namespace {

// As sum_error of interval_ends.h.
torch::Tensor sum_errors(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& sum) {
  const torch::Tensor part = sum - a;
  return (a - (sum - part)) + (b - part);
}

torch::Tensor next_above_where(const torch::Tensor& step, const torch::Tensor& value) {
  const torch::Tensor infinity = torch::full_like(value, kInfinity);
  return torch::where(step, torch::nextafter(value, infinity), value);
}

// function(a, b) of every pair of numbers, on the host, like the larger of both and on its device.
template <typename Function>
torch::Tensor each_pair(const torch::Tensor& a, const torch::Tensor& b, const Function& function) {
  const std::vector<torch::Tensor> same = torch::broadcast_tensors({a, b});
  const torch::Tensor first = same[0].to(torch::kCPU, torch::kDouble).contiguous();
  const torch::Tensor second = same[1].to(torch::kCPU, torch::kDouble).contiguous();
  const torch::Tensor result = torch::empty_like(first);
  const double *left = first.data_ptr<double>(), *right = second.data_ptr<double>();
  double* out = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i) out[i] = function(left[i], right[i]);
  return result.to(a.device());
}

}  // namespace

size_t output_index(const Network& head, const std::string& name) {
  const std::vector<TensorInfo>& outputs = head.outputs();
  const auto own = [](const TensorInfo& output) { return !is_head_output(output.name); };
  if (name.empty() && std::count_if(outputs.begin(), outputs.end(), own) == 1) {
    return static_cast<size_t>(std::find_if(outputs.begin(), outputs.end(), own) - outputs.begin());
  }
  std::string known;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return i;
    known += (i == 0 ? "'" : ", '") + outputs[i].name + "'";
  }
  if (name.empty()) fail("the network has ", outputs.size(), " outputs (", known, "); choose one");
  fail("the network has no output '", name, "', only ", known);
}

torch::Tensor output_matrix(const torch::Tensor& output) {
  const int64_t rows = output.dim() == 0 ? 1 : output.size(0);
  return output.to(torch::kDouble).reshape({rows, rows == 0 ? 1 : output.numel() / rows});
}

torch::Tensor truth_matrix(const torch::Tensor& truth, const torch::Tensor& prediction) {
  const torch::Tensor matrix = output_matrix(truth.to(prediction.device()));
  if (matrix.size(1) == 1 && prediction.size(1) > 1 && matrix.size(0) == prediction.size(0)) {
    fail_option("score", "this one gives intervals, and the network answers ", prediction.size(1),
                " numbers where the target is one; if they are classes, take a score of labels: ",
                "lac, aps, raps, saps, feature_margin or auto");
  }
  if (matrix.sizes() != prediction.sizes()) {
    fail("the target has ", matrix.size(1), " columns in ", matrix.size(0),
         " rows, the network answers ", prediction.size(1), " in ", prediction.size(0));
  }
  return matrix;
}

std::vector<double> plain_scores(const torch::Tensor& scores) {
  const torch::Tensor plain = scores.to(torch::kCPU, torch::kDouble).contiguous();
  const double* data = plain.data_ptr<double>();
  return {data, data + plain.numel()};
}

void check_radii(const torch::Tensor& radius, int64_t rows, int64_t sides) {
  if (radius.dim() != 2 || radius.size(0) != rows || radius.size(1) != sides) {
    fail("the score takes one radius for each of ", rows, " rows and ", sides,
         sides == 1 ? " side" : " sides", "; found ", radius.sizes());
  }
}

torch::Tensor radius_column(const torch::Tensor& radius, const torch::Tensor& like) {
  check_radii(radius, like.size(0), 1);
  return radius.to(like.device(), torch::kDouble);
}

torch::Tensor sums_up(const torch::Tensor& a, const torch::Tensor& b) {
  const torch::Tensor sum = a + b;
  return next_above_where(sum_errors(a, b, sum) > 0, sum);
}

torch::Tensor distances_up(const torch::Tensor& truth, const torch::Tensor& mean) {
  const torch::Tensor difference = truth - mean;
  const torch::Tensor error = sum_errors(truth, -mean, difference);
  const torch::Tensor short_of = torch::where(difference > 0, error, -error) > 0;
  return next_above_where(short_of, difference.abs());
}

torch::Tensor spread_margins(const torch::Tensor& spread, const torch::Tensor& radius) {
  return each_pair(spread, radius, spread_margin);
}

torch::Tensor spread_scores(const torch::Tensor& distance, const torch::Tensor& spread) {
  return each_pair(distance, spread, spread_score);
}

Regions inward_regions(const torch::Tensor& prediction, const torch::Tensor& low,
                       const torch::Tensor& high, const torch::Tensor& low_margin,
                       const torch::Tensor& high_margin) {
  const torch::Tensor infinity = torch::full_like(prediction, kInfinity);
  const auto open = [](const torch::Tensor& margin, const torch::Tensor& from) {
    return (margin == kInfinity).logical_and(from.isnan().logical_not());
  };
  return {prediction,
          torch::where(open(low_margin, low), -infinity, sums_up(low, -low_margin)),
          torch::where(open(high_margin, high), infinity, -sums_up(-high, -high_margin)),
          {}};
}

Regions with_infinite_rows(Regions regions, const torch::Tensor& radius) {
  const torch::Tensor infinite = radius == std::numeric_limits<double>::infinity();
  const torch::Tensor infinity =
      torch::full_like(regions.prediction, std::numeric_limits<double>::infinity());
  regions.lower = torch::where(infinite, -infinity, regions.lower);
  regions.upper = torch::where(infinite, infinity, regions.upper);
  return regions;
}

torch::Tensor row_norms(const torch::Tensor& rows, Norm norm) {
  const torch::Tensor flat = rows.flatten(1).abs();
  switch (norm) {
    case Norm::kInf:
      return flat.amax(1);
    case Norm::kTwo:
      return sum_rows(flat.square()).sqrt();
    default:
      return sum_rows(flat);
  }
}

}  // namespace fcp

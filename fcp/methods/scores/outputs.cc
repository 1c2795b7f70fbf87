#include "fcp/methods/scores/outputs.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/kernels/cpu/row_product.h"

namespace fcp {
namespace {

// As sum_error of outputs.h.
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

namespace {

// With the head outputs that are read, and of the others all, or those alone that are read.
Graph keeping_outputs(const Graph& network, const std::set<std::string>& read, bool all_others) {
  std::vector<TensorInfo> kept;
  for (const TensorInfo& output : network.outputs) {
    const bool other = !is_head_output(output.name);
    if ((other && all_others) || read.contains(output.name)) kept.push_back(output);
  }
  if (kept.size() == network.outputs.size()) return network;
  Graph graph = extract(network, network.inputs, kept);
  graph.metadata = network.metadata;
  return graph;
}

}  // namespace

bool is_head_output(const std::string& output) {
  return output.starts_with("fcp.");  // reserved
}

bool has_output(const Graph& network, const std::string& output) {
  return std::any_of(network.outputs.begin(), network.outputs.end(),
                     [&](const TensorInfo& info) { return info.name == output; });
}

Graph graph_for_score(const Graph& network, const ScoreOptions& options) {
  const std::string low = options.value(field::low), high = options.value(field::high);
  std::set<std::string> read = {options.output, options.value(field::normalize), low, high};
  for (const std::string& learned : options.learned_outputs()) read.insert(learned);
  if (!options.rectifier.empty()) read.insert(options.rectifier);
  // A name that is not there is complained of where it is looked up.
  const bool named = has_output(network, options.output) ||
                     (has_output(network, low) && has_output(network, high));
  return keeping_outputs(network, read, !named);
}

Graph without_heads(const Graph& network) { return keeping_outputs(network, {}, true); }

PixelShape pixel_shape(const torch::Tensor& output) {
  const int64_t rows = output.dim() == 0 ? 1 : output.size(0);
  const int64_t numbers = rows == 0 ? 1 : output.numel() / rows;
  if (output.dim() < 3) return {1, numbers};
  return {output.size(1), numbers / output.size(1)};
}

torch::Tensor enough_pixels(const torch::Tensor& inside, const PixelShape& shape, double share) {
  const int64_t least = least_pixels(share, shape.count);
  if (least == shape.count) return inside.all(1);
  const torch::Tensor pixels = inside.reshape({inside.size(0), shape.channels, shape.count}).all(1);
  return pixels.sum(1) >= least;
}

torch::Tensor pixel_quantile(const torch::Tensor& scores, const PixelShape& shape, double share) {
  const int64_t least = least_pixels(share, shape.count);
  const torch::Tensor largest = scores.amax(1);  // NaN where any is
  if (least == shape.count) return largest;
  const torch::Tensor pixels =
      scores.reshape({scores.size(0), shape.channels, shape.count}).amax(1);  // [N, P]
  if (least == 0) {
    const torch::Tensor none = torch::full_like(largest, -std::numeric_limits<double>::infinity());
    return torch::where(largest.isnan(), largest, none);
  }
  return torch::where(largest.isnan(), largest, std::get<0>(torch::kthvalue(pixels, least, 1)));
}

double pixel_share(double pixels, const std::string& name) {
  if (pixels == 0) return 1;
  if (!(pixels > 0 && pixels <= 1)) {
    fail(name, ": the share of pixels is ", pixels, ", expected more than 0 and at most 1");
  }
  return pixels;
}

}  // namespace fcp

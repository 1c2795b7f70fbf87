#include "fcp/scores/outputs.h"

#include <algorithm>
#include <limits>

#include "fcp/base/error.h"
#include "fcp/network/row_product.h"
#include "fcp/scores/head_outputs.h"

namespace fcp {

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
                "lac, aps, raps, feature_margin or auto");
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

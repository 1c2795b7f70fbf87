#include "fcp/pipeline/answers.h"

#include <cmath>
#include <vector>

#include "fcp/base/any_nan.h"
#include "fcp/base/error.h"

namespace fcp {
namespace {

[[noreturn]] void fail_row(const RowSource& source, size_t row) {
  fail(source.row_place(row), ": the network's answer is NaN, expected a number; do its numbers ",
       "overflow there?");
}

// The first row in which something is wrong, of [N, …] booleans.
void check_rows(const torch::Tensor& wrong, const RowSource& source, size_t first_row) {
  const torch::Tensor rows =
      wrong.reshape({wrong.size(0), -1}).any(1).to(torch::kCPU, torch::kLong);
  if (rows.any().item<bool>()) {
    fail_row(source, first_row + static_cast<size_t>(rows.argmax().item<int64_t>()));
  }
}

}  // namespace

void check_answers(const torch::Tensor& output, const RowSource& source, size_t first_row) {
  if (output.dim() == 0 || output.numel() == 0 || !output.is_floating_point()) return;
  if (output.is_cpu() && output.is_contiguous() && output.scalar_type() == torch::kDouble) {
    const auto count = static_cast<size_t>(output.numel());
    if (!any_nan(output.data_ptr<double>(), count)) return;
  }
  // A sum with a NaN in it is NaN, and costs one look at each number.
  if (std::isfinite(output.sum().item<double>())) return;
  check_rows(output.isnan(), source, first_row);
}

void check_answers(const Regions& regions, const RowSource& source, size_t first_row) {
  if (regions.members.defined()) return check_rows(regions.prediction < 0, source, first_row);
  for (const torch::Tensor* part : {&regions.prediction, &regions.lower, &regions.upper}) {
    check_answers(*part, source, first_row);
  }
}

Conformity judge_numbers(const TensorPredictor& predictor, const TestInputs& rows,
                         const torch::Tensor& truth, const RowSource& source, size_t first_row) {
  try {
    return predictor.judge(rows, truth);
  } catch (const Error&) {  // a score that is NaN has no p-value
    const std::vector<double> scores = predictor.score().score(rows.features, truth);
    const auto sides = static_cast<size_t>(predictor.score().sides());
    for (size_t i = 0; i < scores.size(); ++i) {
      if (std::isnan(scores[i])) fail_row(source, first_row + i / sides);
    }
    throw;
  }
}

}  // namespace fcp

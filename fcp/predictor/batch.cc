#include "fcp/predictor/batch.h"

#include <cmath>

#include <torch/utils.h>

#include "fcp/base/any_nan.h"
#include "fcp/base/error.h"
#include "fcp/predictor/open_data.h"

namespace fcp::internal {
namespace {

[[noreturn]] void fail_of_answer(const std::string& row) {
  fail(row, ": the network's answer is NaN, expected a number; do its numbers overflow there?");
}

// The first row in which something is wrong, of [N, …] booleans.
void check_rows(const torch::Tensor& wrong, const RowNames& row_name) {
  const torch::Tensor rows =
      wrong.reshape({wrong.size(0), -1}).any(1).to(torch::kCPU, torch::kLong);
  if (!rows.any().item<bool>()) return;
  fail_of_answer(row_name(static_cast<size_t>(rows.argmax().item<int64_t>())));
}

}  // namespace

std::string BatchData::name_of(size_t row) const {
  return row_name ? row_name(row) : concat("x: row ", row, " (from 0)");
}

BatchData joined(const std::vector<BatchData>& batches) {
  if (batches.size() == 1) return batches[0];
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  std::vector<torch::Tensor> x;
  BatchData all{.x = {}, .placed = batches.at(0).placed, .row_name = batches[0].row_name};
  for (const BatchData& one : batches) {
    x.push_back(one.x);
    append(all.known.groups, one.known.groups);
    append(all.known.weights, one.known.weights);
    append(all.known.places, one.known.places);
  }
  all.x = torch::cat(x);
  return all;
}

AnswerData part_of(const AnswerData& answer, size_t first, size_t count) {
  const auto narrowed = [&](const torch::Tensor& all) {
    return all.defined() ? all.narrow(0, static_cast<int64_t>(first), static_cast<int64_t>(count))
                         : all;
  };
  const auto each = [&](const std::vector<Regions>& all) {
    std::vector<Regions> parts;
    for (const Regions& one : all) {
      parts.push_back({narrowed(one.prediction), narrowed(one.lower), narrowed(one.upper),
                       narrowed(one.members), narrowed(one.parts), one.side, narrowed(one.factor),
                       narrowed(one.radius)});
    }
    return parts;
  };
  return {answer.levels, each(answer.regions), each(answer.host), narrowed(answer.points)};
}

BatchData batch_of(const Rows& rows, SideInformation known) {
  return {.x = view(rows.x),
          .known = std::move(known),
          .placed = true,
          .row_name = [&rows](size_t row) { return rows.place(row); }};
}

void check_numbers(const torch::Tensor& output, const RowNames& row_name) {
  if (output.dim() == 0 || output.numel() == 0 || !output.is_floating_point()) return;
  if (output.is_cpu() && output.is_contiguous() && output.scalar_type() == torch::kDouble) {
    const auto count = static_cast<size_t>(output.numel());
    if (!any_nan(output.data_ptr<double>(), count)) return;
  }
  // A sum with a NaN in it is NaN, and costs one look at each number.
  if (std::isfinite(output.sum().item<double>())) return;
  check_rows(output.isnan(), row_name);
}

void check_numbers(const Regions& regions, const RowNames& row_name) {
  if (regions.members.defined()) return check_rows(regions.prediction < 0, row_name);
  for (const torch::Tensor* part : {&regions.prediction, &regions.lower, &regions.upper}) {
    check_numbers(*part, row_name);
  }
}

void check_numbers(const std::vector<double>& scores, int64_t sides, const RowNames& row_name) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) fail_of_answer(row_name(i / static_cast<size_t>(sides)));
  }
}

}  // namespace fcp::internal

namespace fcp {

size_t Batch::rows() const { return data_->rows(); }

const std::vector<std::string>& Batch::flags() const {
  static const std::vector<std::string> none;
  return data_->cells == nullptr ? none : data_->cells->flags;
}

}  // namespace fcp

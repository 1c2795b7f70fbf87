#include "fcp/training/tabular_heads.h"

#include <algorithm>

#include <torch/utils.h>

#include "fcp/training/heads.h"
#include "fcp/training/target_scaling.h"

namespace fcp {

bool add_heads(const Array& y, const TabularOptions& made, TabularResult& trained) {
  constexpr size_t kLeastRows = 30;  // of each member
  const auto enough = [](const UnseenRows& member) { return member.rows.size() >= kLeastRows; };
  if (!std::all_of(trained.members.begin(), trained.members.end(), enough)) return false;

  torch::NoGradGuard no_grad;
  const auto rows = static_cast<int64_t>(y.rows());
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()),
                       {rows, static_cast<int64_t>(y.row_size())}, torch::kFloat);
  const torch::Tensor weight = mean_one(made.row_weights);
  std::vector<HeadMember> members;
  for (const UnseenRows& member : trained.members) {
    const torch::Tensor rows_of_member = torch::tensor(member.rows, torch::kLong);
    const torch::Tensor own = truth.index_select(0, rows_of_member);
    members.push_back({member.features, member.predictions, own - member.predictions});
    HeadMember& added = members.back();
    if (weight.defined()) added.weight = weight.index_select(0, rows_of_member);
    for (const int64_t row : member.rows) {
      if (!made.groups.empty()) added.groups.push_back(made.groups[static_cast<size_t>(row)]);
    }
  }
  constexpr size_t kMostFactors = 64;  // outputs, whose factors have as many rows and columns
  HeadOptions options;
  options.fit.seed = made.seed;
  options.factors = y.row_size() > 1 && y.row_size() <= kMostFactors;
  append_heads(trained.graph, "features", "prediction", fit_heads(members, options));
  return true;
}

}  // namespace fcp

#include "fcp/training/tabular_heads.h"

#include <algorithm>

#include <torch/utils.h>

#include "fcp/training/heads.h"

namespace fcp {

bool add_heads(const Array& y, uint64_t seed, std::span<const int64_t> groups,
               TabularResult& trained) {
  constexpr size_t kLeastRows = 30;  // of each member
  const auto enough = [](const UnseenRows& member) { return member.rows.size() >= kLeastRows; };
  if (!std::all_of(trained.members.begin(), trained.members.end(), enough)) return false;

  torch::NoGradGuard no_grad;
  const auto rows = static_cast<int64_t>(y.rows());
  const torch::Tensor truth =
      torch::from_blob(const_cast<float*>(y.values.data()),
                       {rows, static_cast<int64_t>(y.row_size())}, torch::kFloat);
  std::vector<HeadMember> members;
  for (const UnseenRows& member : trained.members) {
    const torch::Tensor own = truth.index_select(0, torch::tensor(member.rows, torch::kLong));
    members.push_back({member.features, member.predictions, own - member.predictions});
    for (const int64_t row : member.rows) {
      if (!groups.empty()) members.back().groups.push_back(groups[static_cast<size_t>(row)]);
    }
  }
  constexpr size_t kMostFactors = 64;  // outputs, whose factors have as many rows and columns
  HeadOptions options;
  options.fit.seed = seed;
  options.factors = y.row_size() > 1 && y.row_size() <= kMostFactors;
  append_heads(trained.graph, "features", "prediction", fit_heads(members, options));
  return true;
}

}  // namespace fcp

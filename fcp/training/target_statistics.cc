#include "fcp/training/target_statistics.h"

#include <algorithm>

#include <torch/types.h>

#include "fcp/base/random.h"
#include "fcp/data/split.h"

namespace fcp {
namespace {

constexpr int64_t kInnerFolds = 5;
constexpr double kPriorRows = 10;

// The place of a row's level among the columns of a category; −1: none.
int64_t level_of(const Array& x, int64_t row, const CategoryColumns& category) {
  const float* values = x.values.data() + row * static_cast<int64_t>(x.row_size()) + category.first;
  for (int64_t l = 0; l < category.count; ++l) {
    if (values[l] == 1) return l;
  }
  return -1;
}

// Sums of one category's levels, with its targets.
class LevelSums {
 public:
  LevelSums(const TreeData& data, const torch::Tensor& targets, const CategoryColumns& category)
      : data_(data),
        targets_(targets),
        category_(category),
        count_(category.count, 0.0),
        sum_(static_cast<size_t>(category.count * targets.size(1)), 0.0) {}

  void add(int64_t row, double sign) {
    const int64_t level = level_of(data_.x, row, category_), width = targets_.size(1);
    if (level < 0) return;
    sign *= row_weight(data_, row);
    count_[static_cast<size_t>(level)] += sign;
    const float* values = targets_.data_ptr<float>() + row * width;
    for (int64_t s = 0; s < width; ++s) {
      sum_[static_cast<size_t>(level * width + s)] += sign * values[s];
    }
  }

  // Statistic less mean, as the graph has it.
  float offset(int64_t level, int64_t s, double mean, double prior) const {
    const double count = count_[static_cast<size_t>(level)];
    const double sum = sum_[static_cast<size_t>(level * targets_.size(1) + s)];
    return static_cast<float>((sum - count * mean) / (count + prior));
  }

  int64_t level(int64_t row) const { return level_of(data_.x, row, category_); }

 private:
  const TreeData& data_;
  const torch::Tensor& targets_;
  CategoryColumns category_;
  std::vector<double> count_, sum_;
};

// Each group goes to the fold that has the fewest rows so far.
std::vector<std::vector<int64_t>> inner_folds(const std::vector<int64_t>& rows,
                                              const std::vector<int64_t>* groups, uint64_t seed) {
  std::vector<std::vector<int64_t>> folds(kInnerFolds);
  if (groups != nullptr && !groups->empty()) {
    std::vector<int64_t> own;
    for (const int64_t row : rows) own.push_back((*groups)[static_cast<size_t>(row)]);
    const GroupedOrder order = grouped_order(own, seed);
    auto fold = folds.begin();
    for (size_t i = 0; i < order.rows.size(); ++i) {
      if (order.first[i] == i) {
        fold = std::min_element(folds.begin(), folds.end(),
                                [](const auto& a, const auto& b) { return a.size() < b.size(); });
      }
      fold->push_back(rows[order.rows[i]]);
    }
    return folds;
  }
  const std::vector<size_t> order = Random(seed).permutation(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) folds[i % kInnerFolds].push_back(rows[order[i]]);
  return folds;
}

// What rows read of one category, from column `first` on.
void encode_level(const std::vector<int64_t>& rows, const LevelSums& sums,
                  const torch::Tensor& mean, double prior, int64_t first, torch::Tensor& encoded) {
  const int64_t width = encoded.size(1);
  const float* means = mean.data_ptr<float>();
  for (const int64_t row : rows) {
    const int64_t level = sums.level(row);
    if (level < 0) continue;
    float* out = encoded.data_ptr<float>() + row * width + first;
    for (int64_t s = 0; s < mean.numel(); ++s) {
      out[s] = sums.offset(level, s, static_cast<double>(means[s]), prior) + means[s];
    }
  }
}

}  // namespace

double row_weight(const TreeData& data, int64_t row) {
  return data.row_weight.defined() ? data.row_weight.data_ptr<float>()[row] : 1.0;
}

EncodedStatistics fit_statistics(const TreeData& data, const torch::Tensor& targets,
                                 const std::vector<CategoryColumns>& categories,
                                 const FitRows& rows, uint64_t seed) {
  EncodedStatistics found;
  const int64_t width = targets.size(1), count = static_cast<int64_t>(categories.size());
  const torch::Tensor own = targets.index_select(0, torch::tensor(rows.training, torch::kLong));
  const torch::Tensor mean = own.to(torch::kDouble).mean(0).to(torch::kFloat);
  found.made.mean = mean.repeat({count});
  int64_t levels = 0;
  for (const CategoryColumns& category : categories) levels += category.count;
  found.made.levels = torch::zeros({levels, count * width}, torch::kFloat);
  found.encoded = found.made.mean.repeat({targets.size(0), 1});
  const auto folds = inner_folds(rows.training, data.groups, seed);
  int64_t first = 0;
  for (int64_t c = 0; c < count; ++c) {
    const CategoryColumns& category = categories[static_cast<size_t>(c)];
    LevelSums sums(data, targets, category);
    for (const int64_t row : rows.training) sums.add(row, 1);
    for (int64_t l = 0; l < category.count; ++l) {
      for (int64_t s = 0; s < width; ++s) {
        found.made.levels[first + l][c * width + s] =
            sums.offset(l, s, mean[s].item<double>(), kPriorRows);
      }
    }
    encode_level(rows.holdout, sums, mean, kPriorRows, c * width, found.encoded);
    for (const std::vector<int64_t>& fold : folds) {
      for (const int64_t row : fold) sums.add(row, -1);
      encode_level(fold, sums, mean, kPriorRows * (1 - 1.0 / kInnerFolds), c * width,
                   found.encoded);
      for (const int64_t row : fold) sums.add(row, 1);
    }
    first += category.count;
  }
  return found;
}

}  // namespace fcp

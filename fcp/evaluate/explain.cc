#include "fcp/evaluate/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/random.h"
#include "fcp/data/columns.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

// The features of one column of the table.
struct Column {
  std::string name;
  int64_t first = 0, width = 1;
};

std::vector<Column> columns_of(const RowSource& source, int64_t width) {
  std::vector<Column> columns;
  if (const CsvEncoding* encoding = source.encoding()) {
    int64_t first = 0;
    for (size_t i = 0; i < encoding->columns.size(); ++i) {
      const auto own = static_cast<int64_t>(encoding->width_of(i));
      columns.push_back({encoding->columns[i], first, own});
      first += own;
    }
    if (first == width) return columns;
    columns.clear();
  }
  for (int64_t i = 0; i < width; ++i) columns.push_back({concat("column ", i), i, 1});
  return columns;
}

class Explainer {
 public:
  Explainer(const internal::PredictorCore& predictor, const Rows& rows,
            const ExplainOptions& options)
      : predictor_(predictor), options_(options), x_(view(rows.x).clone()) {
    const size_t groups = predictor.artifact().rows.group_names.size();
    known_ = side_information(options.facts, groups, 0, rows.x.rows());
    base_ = ask(x_);
    for (const double length : base_.lengths) {
      if (options.finite && !std::isfinite(length)) {
        fail("regions are infinite at alpha ", options.level.text(),
             ": nothing can be said of their length; take a larger alpha");
      }
    }
    spread_ = torch::ones({base_.prediction.size(1)}, torch::kDouble);
    if (base_.prediction.size(1) > 1) {
      const torch::Tensor deviation = base_.prediction.std(0);
      spread_ = torch::where(deviation > 0, deviation, spread_);
    }
  }

  const std::vector<double>& lengths() const { return base_.lengths; }

  ColumnImportance importance(const Column& column, uint64_t seed) const {
    Random random(seed);
    ColumnImportance found{.column = column.name};
    for (size_t i = 0; i < options_.shuffles; ++i) {
      const auto order = random.permutation(static_cast<size_t>(x_.size(0)));
      const std::vector<int64_t> places(order.begin(), order.end());
      const torch::Tensor shuffled =
          x_.narrow(1, column.first, column.width).index_select(0, torch::tensor(places));
      const Answers answers = ask(with(column, shuffled));
      found.prediction += change_of(answers.prediction);
      for (size_t row = 0; row < answers.lengths.size(); ++row) {
        found.length += std::abs(answers.lengths[row] - base_.lengths[row]);
      }
    }
    const auto shuffles = static_cast<double>(options_.shuffles);
    found.prediction /= shuffles;
    found.length /= shuffles * static_cast<double>(base_.lengths.size());
    return found;
  }

  // By how much the column widens each row's region.
  std::vector<double> widening(const Column& column, const torch::Tensor& mean) const {
    const torch::Tensor own = mean.narrow(0, column.first, column.width);
    std::vector<double> by = ask(with(column, own.expand({x_.size(0), column.width}))).lengths;
    for (size_t row = 0; row < by.size(); ++row) by[row] = base_.lengths[row] - by[row];
    return by;
  }

  // Of numbers that are there.
  torch::Tensor mean_of_rows() const {
    const torch::Tensor known = x_.isnan().logical_not();
    const torch::Tensor counts = known.sum(0).clamp_min(1);
    return x_.nan_to_num(0).sum(0) / counts;
  }

 private:
  struct Answers {
    torch::Tensor prediction;  // [N, K]
    std::vector<double> lengths;
  };

  Answers ask(const torch::Tensor& x) const {
    check_interrupted();
    const internal::BatchData batch{.x = x, .known = known_, .placed = true};
    const internal::AnswerData answer = predictor_.predict(batch, {&options_.level, 1});
    const Regions& regions = answer.regions.front();
    return {host_doubles(regions.prediction), region_sizes(regions)};
  }

  torch::Tensor with(const Column& column, const torch::Tensor& values) const {
    torch::Tensor x = x_.clone();
    x.narrow(1, column.first, column.width).copy_(values);
    return x;
  }

  double change_of(const torch::Tensor& prediction) const {
    if (base_.prediction.numel() == 0) return 0;
    if (!predictor_.class_names().empty()) {
      return (prediction != base_.prediction).to(torch::kDouble).mean().item<double>();
    }
    return ((prediction - base_.prediction) / spread_).square().mean().sqrt().item<double>();
  }

  const internal::PredictorCore& predictor_;
  const ExplainOptions& options_;
  torch::Tensor x_;  // [N, D]
  SideInformation known_;
  Answers base_;
  torch::Tensor spread_;  // [K], of the predictions where there are several
};

// The mean of each feature in the training rows; undefined where the network does not say.
torch::Tensor training_mean(const RowSource& source, int64_t width) {
  const CsvEncoding* encoding = source.encoding();
  if (encoding == nullptr || static_cast<int64_t>(encoding->typical.size()) != width) return {};
  return torch::tensor(encoding->typical);
}

Rows some_rows(RowSource& source, size_t most) {
  source.rewind();
  Rows rows, more;
  while (rows.x.rows() < most && source.next(most - rows.x.rows(), more)) {
    if (rows.x.shape.empty()) rows.first_row = more.first_row;
    rows.append(more);
  }
  if (rows.x.shape.size() != 2) {
    fail("explain takes rows of numbers in columns; found rows of shape ",
         shape_text(source.row_shape()));
  }
  if (rows.x.rows() < 2) fail("found ", rows.x.rows(), " rows to explain, expected at least 2");
  return rows;
}

std::string name_of(const Rows& rows, size_t row) {
  const std::string name = rows.name(row);
  return name.empty() ? concat("row ", rows.first_row + row) : name;
}

}  // namespace

Explanation explain(const internal::PredictorCore& predictor, RowSource& source,
                    const ExplainOptions& options, const Context& context) {
  const torch::NoGradGuard no_grad;
  const Rows rows = some_rows(source, options.rows);
  const int64_t width = rows.x.shape[1];
  const std::vector<Column> columns = columns_of(source, width);
  const Explainer explainer(predictor, rows, options);
  Explanation found;
  found.rows = rows.x.rows();
  found.labels = !predictor.class_names().empty();
  found.scaled = !found.labels && predictor.outputs() > 1;
  found.level = options.level.text();
  torch::Tensor mean = training_mean(source, width);
  found.training = mean.defined();
  if (!found.training) mean = explainer.mean_of_rows();

  const std::vector<double>& lengths = explainer.lengths();
  std::vector<size_t> order(lengths.size());
  for (size_t row = 0; row < order.size(); ++row) {
    order[row] = row;
    found.mean_length += lengths[row] / static_cast<double>(lengths.size());
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  order.resize(std::min(order.size(), options.widest));
  for (const size_t row : order) found.widest.push_back({name_of(rows, row), lengths[row], {}});

  Stage stage(context, "explain", columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    found.columns.push_back(explainer.importance(columns[i], Random(context.seed + i).bits()));
    std::vector<double> by;
    if (!order.empty()) by = explainer.widening(columns[i], mean);
    for (size_t k = 0; k < order.size(); ++k) {
      if (by[order[k]] > 0) found.widest[k].reasons.push_back({columns[i].name, by[order[k]]});
    }
    stage.advance(1);
  }
  std::stable_sort(found.columns.begin(), found.columns.end(),
                   [](const ColumnImportance& a, const ColumnImportance& b) {
                     return a.prediction > b.prediction;
                   });
  for (WidenedRow& row : found.widest) {
    std::stable_sort(row.reasons.begin(), row.reasons.end(),
                     [](const auto& a, const auto& b) { return a.by > b.by; });
    row.reasons.resize(std::min(row.reasons.size(), options.reasons));
  }
  return found;
}

}  // namespace fcp

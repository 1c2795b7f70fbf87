#include "fcp/evaluate/conditional_sample.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/methods/method.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {

template <typename Archive>
void visit_fields(Archive& archive, ConditionalRow& row) {
  archive(row.x, row.facts);
}

namespace {

constexpr size_t kSampledRows = 5000;
constexpr size_t kMostColumns = 1024;

bool has_columns(const RowSource& source, const EvaluateOptions& options) {
  if (options.images || source.segmentation()) return false;
  return element_count(source.row_shape()) <= kMostColumns;
}

// A refit answers for the same rows without anything besides x.
void check_refit(const CalibrationArtifact& artifact, const CalibrationArtifact& refit) {
  const bool labels = artifact.method.score.traits().labels || refit.method.score.traits().labels;
  if (labels) fail("refit: stability compares intervals; these are sets of labels");
  const CalibrationTraits& calibration = refit.method.calibration.traits();
  if (calibration.by_group || calibration.by_weight) {
    fail("refit: is calibrated ", refit.method.calibration.name(),
         ", which needs more of a row than its columns");
  }
}

torch::Tensor row_lengths(const Regions& regions) {
  if (regions.members.defined()) return regions.members.sum(1).to(torch::kDouble);
  return region_lengths(regions).mean(1);
}

// The ends of the drawn rows' intervals, all outputs side by side: [n, 2 K].
torch::Tensor ends_of(const Regions& regions, const torch::Tensor& rows) {
  return torch::cat({regions.lower.index_select(0, rows.to(regions.lower.device())),
                     regions.upper.index_select(0, rows.to(regions.upper.device()))},
                    1);
}

}  // namespace

torch::Tensor covered_rows(const Regions& regions, const torch::Tensor& truth) {
  if (!regions.members.defined()) return in_regions(regions, truth.to(torch::kDouble));
  return label_hits(regions.members, truth);
}

ConditionalSample::ConditionalSample(const CalibrationArtifact& artifact, const RowSource& source,
                                     const EvaluateOptions& options, const Context& context)
    : active_(has_columns(source, options) && artifact.rows.targets == 1),
      level_(options.level),
      seed_(context.seed),
      sampler_({kSampledRows}, context.seed) {
  if (!active_ && !options.refits.empty()) {
    fail("refit: rows of images, or of more than ", kMostColumns, " numbers, are not compared");
  }
  for (const CalibrationArtifact* refit : options.refits) {
    check_refit(artifact, *refit);
    refits_.push_back(std::make_unique<internal::PredictorCore>(*refit, context.device));
  }
}

void ConditionalSample::measure(const Rows& rows, const Regions& regions, Packer& packer) {
  if (active_) packer(sampled_of(rows, regions));
}

std::vector<Drawn<ConditionalRow>> ConditionalSample::sampled_of(const Rows& rows,
                                                                 const Regions& regions) {
  const std::vector<DrawnRow> drawn = sampler_.draw(rows.first_row, rows.x.rows())[0];
  if (drawn.empty()) return {};
  std::vector<int64_t> at;
  for (const DrawnRow& one : drawn) at.push_back(static_cast<int64_t>(one.row));
  const torch::Tensor which = torch::tensor(at, torch::kLong);
  const torch::Tensor x = view(rows.x).index_select(0, which);
  const auto column = [&](const torch::Tensor& all) {
    return host_doubles(all).index_select(0, which).unsqueeze(1);
  };
  std::vector<torch::Tensor> facts = {column(covered_rows(regions, view(rows.y))),
                                      column(row_lengths(regions))};
  if (!refits_.empty()) facts.push_back(host_doubles(ends_of(regions, which)));
  for (const auto& refit : refits_) {
    const Regions other = refit->region(refit->describe(x), level_);
    if (other.lower.sizes() != torch::IntArrayRef({x.size(0), regions.lower.size(1)})) {
      fail("refit: predicts ", other.lower.size(1), " numbers for each row, the predictor ",
           regions.lower.size(1));
    }
    facts.push_back(host_doubles(ends_of(other, torch::arange(x.size(0), torch::kLong))));
  }
  const torch::Tensor flat = host_doubles(x.flatten(1)), all = torch::cat(facts, 1).contiguous();
  std::vector<Drawn<ConditionalRow>> sampled;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto row = [i](const torch::Tensor& matrix) {
      const auto width = static_cast<size_t>(matrix.size(1));
      const auto some = numbers(matrix).subspan(i * width, width);
      return std::vector<double>(some.begin(), some.end());
    };
    sampled.push_back({drawn[i].place, {row(flat), row(all)}});
  }
  return sampled;
}

void ConditionalSample::take(Unpacker& unpacker) {
  if (!active_) return;
  std::vector<Drawn<ConditionalRow>> sampled;
  unpacker(sampled);
  put_drawn(sample_, std::move(sampled));
}

std::optional<ConditionalCoverage> ConditionalSample::finish() const {
  if (!active_ || sample_.empty()) return std::nullopt;
  std::vector<double> x, lengths;
  std::vector<uint8_t> covered;
  for (const ConditionalRow& row : sample_) {
    x.insert(x.end(), row.x.begin(), row.x.end());
    covered.push_back(row.facts[0] > 0);
    lengths.push_back(row.facts[1]);
  }
  const size_t columns = sample_[0].x.size();
  ConditionalCoverage found{.rows = sample_.size()};
  found.worst_slab = worst_slab(x, columns, covered, {.seed = seed_});
  found.excess_risk = excess_risk(x, columns, covered, level_, seed_);
  found.gap = coverage_gap(x, columns, covered, level_, seed_);
  found.correlation = length_miss_correlation(lengths, covered);
  if (refits_.empty()) return found;
  const size_t fits = refits_.size() + 1, outputs = (sample_[0].facts.size() - 2) / (2 * fits);
  std::vector<std::vector<double>> lower(fits), upper(fits);
  for (const ConditionalRow& row : sample_) {
    for (size_t fit = 0; fit < fits; ++fit) {
      const auto ends = row.facts.begin() + static_cast<std::ptrdiff_t>(2 + 2 * outputs * fit);
      const auto middle = ends + static_cast<std::ptrdiff_t>(outputs);
      lower[fit].insert(lower[fit].end(), ends, middle);
      upper[fit].insert(upper[fit].end(), middle, middle + static_cast<std::ptrdiff_t>(outputs));
    }
  }
  std::vector<RefitIntervals> refits;
  for (size_t fit = 0; fit < fits; ++fit) refits.push_back({lower[fit], upper[fit]});
  found.refits = refits_.size();
  found.stability = interval_stability(refits);
  return found;
}

namespace {

constexpr size_t kMostShown = 3;    // that are kept
constexpr size_t kMostValues = 30;  // of a column
constexpr size_t kLeastRows = 10;   // of a value that tells whether a column is uneven
constexpr int64_t kNoValue = -1;

// How far coverage is from being equal in all parts, in standard deviations of chance.
double unevenness(const GroupCounts& counts) {
  double covered = 0, rows = 0, parts = 0;
  for (const auto& [value, count] : counts.groups) {
    if (count.rows < kLeastRows) continue;
    covered += static_cast<double>(count.covered);
    rows += static_cast<double>(count.rows);
    ++parts;
  }
  const double rate = covered / std::max(rows, 1.0);
  if (parts < 2 || rate <= 0 || rate >= 1) return -1;
  double statistic = 0;
  for (const auto& [value, count] : counts.groups) {
    if (count.rows < kLeastRows) continue;
    const auto n = static_cast<double>(count.rows);
    const double off = static_cast<double>(count.covered) - n * rate;
    statistic += off * off / (n * rate * (1 - rate));
  }
  return (statistic - (parts - 1)) / std::sqrt(2 * (parts - 1));
}

}  // namespace

PartCoverage::PartCoverage(const RowSource& source, const EvaluateOptions& options)
    : options_(options) {
  const CsvEncoding* encoding = source.encoding();
  if (encoding == nullptr) return;
  for (size_t i = 0; i < encoding->columns.size(); width_ += encoding->width_of(i++)) {
    Column column{encoding->columns[i], width_};
    column.flag = encoding->format(i).kind == ColumnKind::kBoolean;
    if (column.flag) column.names = {"no", "yes"};
    if (encoding->is_category(i)) {
      column.names = encoding->categories[i];
      if (encoding->has_other(i)) column.names.emplace_back("(other)");
    }
    if (column.names.size() >= 2 && column.names.size() <= kMostValues) columns_.push_back(column);
  }
}

int64_t PartCoverage::value_of(const Column& column, const float* row) const {
  if (column.flag) {
    return std::isnan(row[column.first]) ? kNoValue
                                         : static_cast<int64_t>(row[column.first] > 0.5f);
  }
  for (size_t i = 0; i < column.names.size(); ++i) {
    if (row[column.first + i] > 0.5f) return static_cast<int64_t>(i);
  }
  return kNoValue;
}

void PartCoverage::measure(const Rows& rows, const Regions& regions, Packer& packer) const {
  std::vector<uint8_t> covered;
  std::vector<int64_t> values;
  const bool wanted =
      !columns_.empty() || !options_.periods.ids.empty() || !options_.together.empty();
  if (wanted) {
    const torch::Tensor inside = host_doubles(covered_rows(regions, view(rows.y)));
    for (const double in : numbers(inside)) covered.push_back(in > 0.5);
  }
  if (rows.x.row_size() == width_) {
    for (size_t i = 0; i < covered.size(); ++i) {
      for (const Column& column : columns_) {
        values.push_back(value_of(column, rows.x.values.data() + i * width_));
      }
    }
  }
  packer.add(covered);
  packer.add(values);
}

void PartCoverage::take(Unpacker& unpacker) {
  const auto covered = unpacker.numbers<uint8_t>();
  const auto values = unpacker.numbers<int64_t>();
  for (size_t i = 0; i < covered.size(); ++i, ++rows_) {
    for (size_t column = 0; column < columns_.size() && !values.empty(); ++column) {
      const int64_t value = values[i * columns_.size() + column];
      if (value != kNoValue) columns_[column].counts.add(value, covered[i] != 0);
    }
    if (!options_.periods.ids.empty())
      periods_.add(options_.periods.ids.at(rows_), covered[i] != 0);
    if (!options_.together.empty()) together_.add(options_.together.at(rows_), covered[i] != 0);
  }
}

void PartCoverage::finish(EvaluationReport& report) const {
  std::vector<std::pair<double, const Column*>> order;
  for (const Column& column : columns_) {
    const double uneven = unevenness(column.counts);
    if (uneven > 0) order.emplace_back(uneven, &column);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < std::min(order.size(), kMostShown); ++i) {
    const Column& column = *order[i].second;
    report.by_column.push_back({column.name, group_coverage(column.counts, column.names)});
  }
  report.over_time = group_coverage(periods_, options_.periods.names);
  if (!together_.groups.empty()) report.rows_alike = design_effect(together_);
}

double design_effect(const GroupCounts& groups) {
  double covered = 0, rows = 0;
  for (const auto& [group, count] : groups.groups) {
    covered += static_cast<double>(count.covered);
    rows += static_cast<double>(count.rows);
  }
  const auto n = static_cast<double>(groups.groups.size());
  const double rate = covered / rows;
  if (rate <= 0 || rate >= 1 || n < 2) return rows / n;
  double spread = 0;
  for (const auto& [group, count] : groups.groups) {
    const double off = static_cast<double>(count.covered) - rate * static_cast<double>(count.rows);
    spread += off * off;
  }
  return std::max(1.0, n / (n - 1) * spread / (rows * rate * (1 - rate)));
}

}  // namespace fcp

#include "fcp/evaluate/judge.h"

#include <vector>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/text_table.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {

HostIntervals::HostIntervals(const torch::Tensor& truths, const Regions& regions)
    : lower(host_doubles(regions.lower)),
      upper(host_doubles(regions.upper)),
      truth(host_doubles(truths)),
      side(regions.side) {
  if (side != BoundSide::kBoth) prediction = host_doubles(regions.prediction);
  if (regions.parts.defined()) parts = host_doubles(regions.parts);
  if (!regions.factor.defined()) return;
  volumes = host_doubles(region_volumes(regions));
  const torch::Tensor in = in_regions(regions, truth).to(torch::kByte).contiguous();
  inside.assign(in.data_ptr<uint8_t>(), in.data_ptr<uint8_t>() + in.numel());
}

IntervalBatch HostIntervals::batch() const {
  IntervalBatch batch;
  batch.lower = numbers(lower);
  batch.upper = numbers(upper);
  batch.truth = numbers(truth);
  batch.side = side;
  if (prediction.defined()) batch.prediction = numbers(prediction);
  batch.inside = inside;
  if (volumes.defined()) batch.volumes = numbers(volumes);
  if (!parts.defined()) return batch;
  batch.parts = numbers(parts);
  batch.part_count = static_cast<size_t>(parts.size(2));
  return batch;
}

JudgedRows Judge::run(const Rows& rows, const RowFacts& facts, size_t first) const {
  const size_t groups = artifact().rows.group_names.size();
  const SideInformation known = side_information(facts, groups, first, rows.x.rows());
  return {rows, predictor_.describe(view(rows.x), known), view(rows.y)};
}

Regions Judge::regions(const JudgedRows& rows, const Level& level) const {
  Regions regions = predictor_.region(rows.inputs, level);
  internal::check_numbers(regions, rows.names());
  return regions;
}

Conformity Judge::judge(const JudgedRows& rows, bool p_values) const {
  Conformity judged{predictor_.scores(rows.inputs, rows.truth, rows.names()), {}};
  if (p_values) judged.p_values = predictor_.p_values(rows.inputs, rows.truth, judged.scores);
  return judged;
}

namespace {

struct RowFigures {
  std::vector<double> covered, sizes, scores;  // scores: of intervals alone
};

// The mean interval score over the outputs of each row.
void add_interval_scores(const Regions& regions, const torch::Tensor& truth, const Level& level,
                         std::vector<double>& scores) {
  const HostIntervals host(truth, regions);
  const IntervalBatch batch = host.batch();
  const size_t outputs = host.outputs();
  for (size_t row = 0; row * outputs < batch.truth.size(); ++row) {
    double sum = 0;
    for (size_t i = row * outputs; i < (row + 1) * outputs; ++i) {
      const MeasuredRegion region = measure_region(batch, i);
      sum += region_score(region, level, batch.side);
    }
    scores.push_back(sum / static_cast<double>(outputs));
  }
}

RowFigures measure_rows(const ComparedPredictor& compared, const Level& level,
                        const Context& context) {
  const Judge judge(*compared.artifact, context.device);
  RowFigures figures;
  each_batch(*compared.rows, context, "compare", [&](const Rows& rows) {
    const JudgedRows judged = judge.run(rows, compared.facts, figures.covered.size());
    const std::vector<double> scores = judge.judge(judged, /*p_values=*/false).scores;
    const Regions regions = judge.regions(judged, level);
    const std::vector<bool> in = judge.within(judged, scores, level);
    const auto targets = static_cast<size_t>(judge.score().targets());
    for (size_t i = 0; i < in.size(); i += targets) {  // of each target, the share that is in
      const auto first = in.begin() + static_cast<std::ptrdiff_t>(i);
      const auto own = std::count(first, first + static_cast<std::ptrdiff_t>(targets), true);
      figures.covered.push_back(static_cast<double>(own) / static_cast<double>(targets));
    }
    for (const double size : region_sizes(regions)) figures.sizes.push_back(size);
    if (judge.score().classes() == 0) {
      add_interval_scores(regions, judged.truth, level, figures.scores);
    }
  });
  check_facts(compared.facts, figures.covered.size());
  return figures;
}

// 1: a is better, −1: b is, 0: none can be told to be.
int better_of(const Comparison& found) {
  const PairedDifference& main = found.score ? *found.score : found.size;
  if (!main.certain()) return 0;
  const int better = main.difference < 0 ? 1 : -1;
  const size_t own = better > 0 ? found.size.infinite_a : found.size.infinite_b;
  const size_t other = better > 0 ? found.size.infinite_b : found.size.infinite_a;
  if (own > other) return 0;
  const bool covers_less = found.coverage.certain() && better * found.coverage.difference < 0;
  return !found.score && covers_less ? 0 : better;
}

void add_verdict(Comparison& found) {
  const int better = better_of(found);
  found.better = better > 0 ? "a" : better < 0 ? "b" : "";
  if (better == 0) {
    found.verdict = "none is better beyond doubt (95 %)";
    return;
  }
  const PairedDifference& main = found.score ? *found.score : found.size;
  const double best = better > 0 ? main.mean_a : main.mean_b;
  const double other = better > 0 ? main.mean_b : main.mean_a;
  found.verdict =
      concat(found.better, " is better: its mean ", found.score ? "interval score" : "size", " is ",
             format_number(best), " against ", format_number(other), " (95 %)");
}

}  // namespace

Comparison compare(const ComparedPredictor& a, const ComparedPredictor& b, const Level& level,
                   const Context& context) {
  torch::NoGradGuard no_grad;
  const RowFigures of_a = measure_rows(a, level, context);
  const RowFigures of_b = measure_rows(b, level, context);
  if (of_a.covered.size() != of_b.covered.size()) {
    fail("a read ", of_a.covered.size(), " rows and b ", of_b.covered.size());
  }
  if (of_a.covered.empty()) fail("the data has no rows to compare on");
  if (of_a.scores.empty() != of_b.scores.empty()) {
    fail("one predictor gives intervals and the other sets of labels; they cannot be compared");
  }
  Comparison found{.level = level,
                   .rows = of_a.covered.size(),
                   .coverage = paired_difference(of_a.covered, of_b.covered),
                   .size = paired_difference(of_a.sizes, of_b.sizes),
                   .score = {},
                   .better = {},
                   .verdict = {}};
  if (!of_a.scores.empty()) found.score = paired_difference(of_a.scores, of_b.scores);
  add_verdict(found);
  return found;
}

}  // namespace fcp

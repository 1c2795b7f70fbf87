// Intervals on a stream of rows; see method_evaluator.h.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/evaluate/measures/interval_evaluation.h"
#include "fcp/evaluate/method_evaluator.h"
#include "fcp/interval.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

constexpr size_t kMostOutputs = 12;  // outputs of an example

// Whether the interval of an output, or a part of the union in its place, holds the truth.
bool holds(const Regions& regions, int64_t row, int64_t output, double truth) {
  const auto in = [truth](const torch::Tensor& lower, const torch::Tensor& upper) {
    return Interval{lower.item<double>(), upper.item<double>()}.contains(truth);
  };
  if (!regions.parts.defined()) return in(regions.lower[row][output], regions.upper[row][output]);
  const torch::Tensor parts = regions.parts[row][output];  // [parts, 2]
  for (int64_t part = 0; part < parts.size(0); ++part) {
    if (in(parts[part][0], parts[part][1])) return true;
  }
  return false;
}

IntervalExample interval_example(const MeasuredRegions& measured, int64_t row, int64_t output,
                                 double truth) {
  const auto at = [&](const torch::Tensor& ends) { return ends[row][output].item<double>(); };
  const Regions& regions = measured.regions;
  IntervalExample example{at(regions.prediction), at(regions.lower), at(regions.upper), truth};
  for (const Regions& level : measured.at_levels) {
    example.at_levels.push_back(
        {{at(level.lower), at(level.upper)}, holds(level, row, output, truth)});
  }
  return example;
}

class IntervalMethod : public MethodEvaluator {
 public:
  using MethodEvaluator::MethodEvaluator;

  // The first output stands for the row.
  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    const size_t outputs = rows.y.row_size();
    Example example;
    example.name = rows.name(i);
    if (example.name.empty()) example.name = concat("row ", rows.first_row + i);
    for (size_t k = 0; k < std::min(outputs, kMostOutputs); ++k) {
      const size_t at = i * outputs + k;
      const double truth = rows.y.exact.empty() ? rows.y.values[at] : rows.y.exact[at];
      const auto output = static_cast<int64_t>(k);
      IntervalExample one = interval_example(measured, row, output, truth);
      if (k > 0) {
        example.others.push_back(std::move(one));
        continue;
      }
      example.covered = holds(measured.regions, row, output, truth);
      example.region = std::move(one);
    }
    return example;
  }

  std::optional<double> length(const Regions& regions, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    if (regions.side != BoundSide::kBoth) return region_lengths(regions)[row][0].item<double>();
    return regions.upper[row][0].item<double>() - regions.lower[row][0].item<double>();
  }

 protected:
  void measure_regions(const JudgedRows& rows, const Regions& regions,
                       Packer& packer) const override {
    const HostIntervals host(rows.truth, regions);
    for (const torch::Tensor& part :
         {host.lower, host.upper, host.truth, host_doubles(regions.prediction)}) {
      packer.add(numbers(part));
    }
    packer.add(host.outputs());
    packer.add(host.batch().parts);
    packer.add(uint64_t{host.batch().part_count});
    packer.add(host.inside);
    packer.add(host.batch().volumes);
  }

  LevelSums sums_at(const Rows& rows, const Regions& regions) const override {
    const HostIntervals host(view(rows.y), regions);
    return level_sums(host.batch(), host.outputs(), targets() > 1);
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t> groups) override {
    const auto lower = unpacker.numbers<double>(), upper = unpacker.numbers<double>(),
               truth = unpacker.numbers<double>(), prediction = unpacker.numbers<double>();
    const size_t outputs = unpacker.number();
    const auto parts = unpacker.numbers<double>();
    const size_t part_count = unpacker.number();
    const auto inside = unpacker.numbers<uint8_t>();
    const auto volumes = unpacker.numbers<double>();
    if (!evaluator_) {
      evaluator_.emplace(
          outputs, IntervalEvaluationOptions{.level = method_.options.level,
                                             .side = method_.artifact().method.score.side,
                                             .each = targets() > 1,
                                             .group_names = method_.options.facts.shown.names});
    }
    evaluator_->add({.lower = lower,
                     .upper = upper,
                     .truth = truth,
                     .groups = groups,
                     .parts = parts,
                     .part_count = part_count,
                     .prediction = prediction,
                     .inside = inside,
                     .volumes = volumes,
                     .side = method_.artifact().method.score.side});
  }

  void finish_regions(MethodResult& result) const override {
    result.evaluation = evaluator_->finish();
  }

  bool curve_of_scores() const override { return true; }

 private:
  std::optional<IntervalEvaluator> evaluator_;
};

}  // namespace

std::unique_ptr<MethodEvaluator> make_interval_evaluator(const EvaluatedMethod& method) {
  return std::make_unique<IntervalMethod>(method);
}

}  // namespace fcp

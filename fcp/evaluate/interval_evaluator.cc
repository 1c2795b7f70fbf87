// Intervals on a stream of rows; see method_evaluator.h.
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

// Whether the first interval of a row, or a part of the union in its place, holds the truth.
bool holds(const Regions& regions, int64_t row, double truth) {
  const auto in = [truth](const torch::Tensor& lower, const torch::Tensor& upper) {
    return Interval{lower.item<double>(), upper.item<double>()}.contains(truth);
  };
  if (!regions.parts.defined()) return in(regions.lower[row][0], regions.upper[row][0]);
  const torch::Tensor parts = regions.parts[row][0];  // [parts, 2]
  for (int64_t part = 0; part < parts.size(0); ++part) {
    if (in(parts[part][0], parts[part][1])) return true;
  }
  return false;
}

class IntervalMethod : public MethodEvaluator {
 public:
  using MethodEvaluator::MethodEvaluator;

  // The first output stands for the row.
  Example example(const Rows& rows, const MeasuredRegions& measured, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    const auto first = [row](const torch::Tensor& ends) { return ends[row][0].item<double>(); };
    const Regions& regions = measured.regions;
    IntervalExample interval{first(regions.prediction), first(regions.lower), first(regions.upper),
                             rows.y.values[i * (rows.y.values.size() / rows.x.rows())]};
    for (const Regions& at : measured.at_levels) {
      interval.at_levels.push_back(
          {{first(at.lower), first(at.upper)}, holds(at, row, interval.truth)});
    }
    std::string name = rows.name(i);
    if (name.empty()) name = concat("row ", rows.first_row + i);
    const bool covered = holds(regions, row, interval.truth);
    return {.name = std::move(name), .covered = covered, .region = std::move(interval)};
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

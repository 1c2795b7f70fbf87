// Intervals on a stream of rows; see method_evaluator.h.
#include <optional>

#include "fcp/evaluation/interval_evaluation.h"
#include "fcp/pipeline/method_evaluator.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/region_tensors.h"

namespace fcp {
namespace {

class IntervalMethod : public MethodEvaluator {
 public:
  using MethodEvaluator::MethodEvaluator;

  // The first output stands for the row.
  Example example(const Rows& rows, const Regions& regions, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    const auto first = [row](const torch::Tensor& ends) { return ends[row][0].item<double>(); };
    const IntervalExample interval{first(regions.prediction), first(regions.lower),
                                   first(regions.upper),
                                   rows.y.values[i * (rows.y.values.size() / rows.x.rows())]};
    return {.covered = interval.lower <= interval.truth && interval.truth <= interval.upper,
            .region = interval};
  }

  std::optional<double> length(const Regions& regions, size_t i) const override {
    const auto row = static_cast<int64_t>(i);
    return regions.upper[row][0].item<double>() - regions.lower[row][0].item<double>();
  }

 protected:
  torch::Tensor truth_of(const Rows& rows) const override {
    return view(rows.y).to(torch::kDouble);
  }

  void measure_regions(const TestInputs&, const Rows& rows, const Regions& regions,
                       Packer& packer) const override {
    for (const torch::Tensor& part : {regions.lower, regions.upper, view(rows.y)}) {
      const torch::Tensor plain = host_doubles(part);
      packer.add(numbers(plain));
    }
    packer.add(static_cast<uint64_t>(regions.lower.size(1)));
    const bool unions = regions.parts.defined();
    const torch::Tensor parts = unions ? host_doubles(regions.parts) : torch::Tensor();
    packer.add(unions ? numbers(parts) : std::span<const double>());
    packer.add(unions ? static_cast<uint64_t>(parts.size(2)) : uint64_t{0});
  }

  void take_regions(Unpacker& unpacker, std::span<const int64_t> groups) override {
    const auto lower = unpacker.numbers<double>(), upper = unpacker.numbers<double>(),
               truth = unpacker.numbers<double>();
    const size_t outputs = unpacker.number();
    const auto parts = unpacker.numbers<double>();
    const size_t part_count = unpacker.number();
    if (!evaluator_) {
      evaluator_.emplace(
          outputs, IntervalEvaluationOptions{.level = method_.options.level,
                                             .group_names = method_.options.facts.shown.names});
    }
    evaluator_->add({.lower = lower,
                     .upper = upper,
                     .truth = truth,
                     .groups = groups,
                     .parts = parts,
                     .part_count = part_count});
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

// CQR and Feature CQR with their coverage by group: the paper's tables on Feature CQR and on group
// coverage.
#include <nlohmann/json.hpp>

#include "apps/experiments/paper_numbers.h"
#include "apps/experiments/registry.h"
#include "apps/experiments/regression.h"
#include "apps/experiments/result_rows.h"
#include "apps/experiments/set_tables.h"

namespace fcp {
namespace {

// How the paper trains its quantile networks it does not say. After the ten epochs of its Feature
// CP, CQR is far longer than it prints; after a hundred it meets the paper on two sets.
constexpr int64_t kQuantileEpochs = 100;
constexpr int64_t kQuickEpochs = 10;

Json run_cqr_cell(const CellKey& key, const ExperimentOptions& options) {
  RegressionOptions regression = regression_options(options, quantile_methods());
  if (options.epochs == 0) regression.epochs = options.quick ? kQuickEpochs : kQuantileEpochs;
  return rows_of(run_regression(prepare_cell(key, options), regression));
}

std::string both_thirds(const std::vector<RowGroup>& groups, const std::string& set) {
  const auto third = [&](std::string_view method) {
    return fixed_text(100 * spread_at(groups, {set, method}, "worst_third_coverage").mean, 1);
  };
  return concat(third("cqr"), " / ", third("feature_cqr-auto"));
}

ResultTable cqr_beside_paper(const Json& rows) {
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  ResultTable table{
      "Lengths, and coverage of the worst third by response (CQR / Feature CQR), beside the "
      "paper's",
      {"set", "cqr", "paper CQR", "feature_cqr-paper", "feature_cqr", "feature_cqr-auto",
       "paper Feature CQR", "worst third %", "paper's worst third %"},
      {}};
  for (const std::string& set : values_of(rows, "set")) {
    const PaperSet& paper = paper_set(set);
    const auto ours = [&](std::string_view method) {
      return spread_text(spread_at(groups, {set, method}, "length"));
    };
    const std::string thirds =
        paper.cqr_third.empty() ? "" : concat(paper.cqr_third, " / ", paper.feature_cqr_third);
    table.rows.push_back({set, ours("cqr"), std::string(paper.cqr), ours("feature_cqr-paper"),
                          ours("feature_cqr"), ours("feature_cqr-auto"),
                          std::string(paper.feature_cqr), both_thirds(groups, set), thirds});
  }
  return table;
}

void present_cqr(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "Two networks per seed, one for each of the quantiles 0.05 and 0.95, trained for 100 epochs "
      "at "
      "most; folds and unit as in the regression experiment. The worst third is the paper's group "
      "coverage: the test rows in three groups by their response, the least covered of them. `cqr` "
      "is symmetric, `cqr-asymmetric` has a radius per side at α/2; `feature_cqr-paper` is "
      "Algorithm "
      "4 with signed surrogate distances, each side at 1 − α as printed there, its steps chosen so "
      "that the bands cover 90 % of a validation slice; `feature_cqr` and `-asymmetric` are the "
      "nested form, cut after hidden layer 2, and `feature_cqr-auto` chooses cut and floor on a "
      "fifth of the calibration rows, which is then left out.";
  section.tables = {cqr_beside_paper(rows), coverage_table(rows)};
  section.figures = {relative_length_figure(
      rows, "cqr", {"feature_cqr-paper", "feature_cqr", "feature_cqr-auto", "cqr-asymmetric"})};
}

}  // namespace

Experiment cqr_experiment() {
  Experiment experiment;
  experiment.name = "cqr";
  experiment.title = "CQR, Feature CQR and coverage by group";
  experiment.claim =
      "Feature CQR is 12 to 46 % shorter than CQR on all ten sets at 90 % coverage, and covers the "
      "worst third better on four sets, as well on five.";
  experiment.sets = one_dimensional_sets();
  experiment.quick_sets = {"demo"};
  experiment.methods = quantile_methods();
  experiment.run = run_cqr_cell;
  experiment.present = present_cqr;
  experiment.readings = {
      "Ten epochs are too few for quantile networks (`--epochs 10`: community 1.89, bike "
      "2.07, blog 3.51). With 100, our CQR meets the paper's on community and star and "
      "comes near on bio. On bike, facebook1 and blog the paper's CQR is about half as long "
      "as ours, on meps21 (another file) two thirds. How it trains quantiles is not "
      "described; CQR lengths published elsewhere for bike (1.56), facebook1 (2.69) and "
      "blog (3.34) are longer than ours.",
      "Every nested form covers 90 %. With cut and floor chosen it is within 2 % of CQR on "
      "community, star, bio, bike and meps21, 7 % shorter on blog and 14 % on facebook1 "
      "(where part of it is CQR's own overcoverage): the networks' quantiles adapt to the "
      "input already, and what remains for feature space to add is small. Of the paper's "
      "gains over CQR, 12 to 46 %, we find none beyond that at honest coverage.",
      "The paper's form is not shorter than CQR here. Its sides are calibrated at 1 − α "
      "each, which promises 1 − 2α, and detection is between 29 and 82 %; that its bands "
      "cover 90 % comes from choosing the steps on a validation slice, and on four sets "
      "that fails for some seeds.",
      "The worst third is covered at least as well as in the paper on every set, but for "
      "Feature CQR on star; asymmetric calibration lifts it further (blog 74 → 80 %) for a "
      "few per cent of length."};
  return experiment;
}

}  // namespace fcp

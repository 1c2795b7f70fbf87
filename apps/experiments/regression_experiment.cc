// CP and Feature CP on the paper's ten one-dimensional sets and its synthetic one: its Figure 2,
// the table of its appendix, and the synthetic half of its Table 1.

#include <array>

#include <nlohmann/json.hpp>

#include "apps/experiments/experiment.h"
#include "apps/experiments/regression.h"
#include "apps/experiments/result_rows.h"

namespace fcp {
namespace {

Json run_regression_cell(const CellKey& key, const ExperimentOptions& options) {
  return rows_of(run_regression(prepare_cell(key, options),
                                regression_options(options, regression_methods())));
}

ResultTable lengths_beside_paper(const Json& rows) {
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  ResultTable table{"Lengths beside the paper's, and those of its official code by its own recipe",
                    {"set", "residual", "paper CP", "official CP", "surrogate-ibp", "paper FCP",
                     "official FCP", "nested", "nested-auto", "linearized"},
                    {}};
  for (const std::string& set : values_of(rows, "set")) {
    const PaperSet& paper = paper_set(set);
    const auto ours = [&](std::string_view method) {
      return spread_text(spread_at(groups, {set, method}, "length"));
    };
    table.rows.push_back({set, ours("residual"), std::string(paper.cp),
                          std::string(paper.official_cp), ours("surrogate-ibp"),
                          std::string(paper.fcp), std::string(paper.official_fcp), ours("nested"),
                          ours("nested-auto"), ours("linearized")});
  }
  return table;
}

void present_regression(const Json& rows, const ExperimentOptions& options,
                        ResultSection& section) {
  section.setup =
      "Each seed: 2 : 2 : 1 into training, calibration and test; the paper's network and training; "
      "all methods over the same network. Lengths are in units of mean |y| of the training fold; ± "
      "is the sample deviation over seeds. Interval coverage is how often the printed interval "
      "holds the truth; detection is the surrogate's own coverage, score below the radius. "
      "`residual` is vanilla CP; `surrogate-ibp` and `surrogate-crown` are the paper's Feature CP "
      "as its code does it, with the number of steps M it chooses (a seed for which none of 200 "
      "steps reaches 90 % has no result); `nested` is our default score, cut after hidden layer 2; "
      "`nested-auto` chooses cut and floor on a fifth of the calibration rows, which is then left "
      "out; `linearized` is Fast Feature CP. meps21 is a rebuilt stand-in of 15,670 rows.";
  section.tables = {lengths_beside_paper(rows), coverage_table(rows)};
  section.figures = {
      relative_length_figure(rows, "residual",
                             {"surrogate-ibp", "nested", "nested-auto", "linearized"}),
      coverage_figure(rows, {"residual", "surrogate-ibp", "nested-auto"}, options.level)};
}

}  // namespace

Experiment regression_experiment() {
  Experiment experiment;
  experiment.name = "regression";
  experiment.title = "CP and Feature CP on the regression sets";
  experiment.claim =
      "Feature CP covers 90 % and is shorter than vanilla CP on eight of ten sets, as long on the "
      "others (its Figure 2 and appendix), and shorter on the synthetic set (its Table 1).";
  experiment.sets = regression_sets();
  experiment.quick_sets = {"demo", "synthetic"};
  experiment.methods = regression_methods();
  experiment.run = run_regression_cell;
  experiment.present = present_regression;
  experiment.readings = {
      "The printed interval of the paper's score covers what luck makes of it: on the "
      "synthetic set 85 % with IBP and 1.4 % with CROWN, while detection reports 90 %. "
      "`nested` covers 90 % on every set, by construction.",
      "`nested-auto` is the shortest on every real set but star, where all are alike: 8 % "
      "(bio) to 44 % (facebook1) shorter than vanilla CP. On the synthetic set, whose noise "
      "is the same everywhere, there is nothing to gain.",
      "`linearized` costs a few milliseconds and is close to `nested` at the same cut.",
      "Vanilla CP agrees with the paper and its code within two deviations of the two runs "
      "together on every set. Star is the widest apart: folds are drawn by another "
      "generator, and over 300 draws of them the same training gives 0.394 ± 0.035 with us "
      "and 0.393 with PyTorch, so five seeds on 433 test rows can land there. meps21 is "
      "another file than the paper's.",
      "Bike and meps21 are luck of the folds too. Over 100 draws the same training gives "
      "bike a residual length of 1.941 ± 0.077 with us and 1.932 ± 0.084 with an eager "
      "PyTorch replica of the official recipe; over 60 draws meps21 has 4.19 ± 0.44 and "
      "4.18 ± 0.48. Our seeds 0–4 are on the long side of bike, the official ones on the "
      "short side of both.",
      "Little is left to a better choice of cut and floor: the candidate that is shortest "
      "on the test rows, which nobody can know, would be 0.1 to 2.2 % shorter than the "
      "chosen one. Finer floors, other norms and other slices change the length by 2.3 % at "
      "most. Only a radius for each feature in proportion to its spread on the selection "
      "slice pays, 1 to 3 %, and is what `--cut auto` does."};
  return experiment;
}

// CQR and Feature CQR with their coverage by group: the paper's tables on Feature CQR and on group
// coverage.

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

// Where a perceptron is cut: the paper's ablation of the layers of f and g, 1 : 3, 2 : 2 and 3 : 1.

namespace {

struct LayerCut {
  const char* layers;  // of f and g
  const char* tensor;
};
constexpr std::array<LayerCut, 3> kLayerCuts = {
    {{"1:3", "hidden1"}, {"2:2", "hidden2"}, {"3:1", "hidden3"}}};

const std::vector<std::string>& cut_methods() {
  static const std::vector<std::string> methods = {"surrogate-ibp", "nested", "linearized"};
  return methods;
}

Json run_cut_ablation(const CellKey& key, const ExperimentOptions& options) {
  const PreparedSet set = prepare_cell(key, options);
  Json rows = Json::array();
  RegressionOptions regression = regression_options(options, cut_methods());
  for (const LayerCut& cut : kLayerCuts) {
    regression.cut = cut.tensor;
    for (Json& row : rows_of(run_regression(set, regression))) {
      row["layers"] = cut.layers;
      rows.push_back(row);
    }
  }
  return rows;
}

void present_cut_ablation(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "The networks of the regression experiment, cut after hidden layer 1, 2 and 3. Coverage is "
      "that of the printed intervals.";
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "layers", "method"});
  ResultTable table{"Layers of f and g",
                    {"set", "f : g", "surrogate-ibp", "its coverage %", "paper FCP", "nested",
                     "its coverage %", "linearized"},
                    {}};
  for (const std::string& set : values_of(rows, "set")) {
    for (const LayerCut& cut : kLayerCuts) {
      const auto length = [&](std::string_view method) {
        const RowGroup* group = find_group(groups, {set, cut.layers, method});
        if (!group) return std::string("–");
        return group->rows.empty() ? group->failed_text() : spread_text(group->spread("length"));
      };
      const auto coverage = [&](std::string_view method) {
        return percent_text(spread_at(groups, {set, cut.layers, method}, "coverage"));
      };
      table.rows.push_back({set, cut.layers, length("surrogate-ibp"), coverage("surrogate-ibp"),
                            paper_cut_length(set, cut.layers), length("nested"), coverage("nested"),
                            length("linearized")});
    }
  }
  section.tables = {table};
}

}  // namespace

Experiment cut_ablation() {
  Experiment experiment;
  experiment.name = "cuts";
  experiment.title = "The cut of a perceptron";
  experiment.claim =
      "coverage does not depend on where the network is cut; the length does: the longer the head, "
      "the shorter the band (f : g of 1 : 3, 2 : 2 and 3 : 1 on bio, bike and blog).";
  experiment.sets = {"bio", "bike", "blog"};
  experiment.quick_sets = {"demo"};
  experiment.methods = cut_methods();
  experiment.run = run_cut_ablation;
  experiment.present = present_cut_ablation;
  experiment.readings = {
      "Coverage does not depend on the cut, and the longer the head the shorter the band of "
      "`nested`, as the paper finds for its own: for 1 : 3, 2 : 2 and 3 : 1 bio has 1.82, "
      "1.86 and 1.94, bike 1.83, 1.88 and 1.98, blog 2.67, 2.85 and 3.55. The paper's own "
      "score follows on bio; on blog its 1 : 3 is no shorter than its 2 : 2 here.",
      "A head of one layer is linear: at 3 : 1 `nested` and `linearized` are vanilla CP in "
      "another unit, to the digit. `linearized` gains nothing from a head of three layers "
      "over one of two.",
      "At 3 : 1 no number of steps up to 200 reaches 90 % on bio and bike with the step "
      "size of the official code; the paper must have taken larger steps there."};
  return experiment;
}

// Networks as they were initialised: the paper's table on untrained base models.

namespace {

const std::vector<std::string>& untrained_methods() {
  static const std::vector<std::string> methods = {"residual", "surrogate-ibp", "nested",
                                                   "linearized"};
  return methods;
}

Json run_untrained(const CellKey& key, const ExperimentOptions& options) {
  RegressionOptions regression = regression_options(options, untrained_methods());
  regression.epochs = 0;
  return rows_of(run_regression(prepare_cell(key, options), regression));
}

void present_untrained(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup =
      "As the regression experiment, with the network as it was initialised. The surrogate's "
      "number of steps is chosen as there; a seed without one has no result.";
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "method"});
  ResultTable table{
      "Lengths over untrained networks",
      {"set", "residual", "paper CP", "surrogate-ibp", "", "paper FCP", "nested", "linearized"},
      {}};
  for (const std::string& set : values_of(rows, "set")) {
    const PaperSet& paper = paper_set(set);
    const auto ours = [&](std::string_view method) {
      return spread_text(spread_at(groups, {set, method}, "length"), 2);
    };
    const RowGroup* surrogate = find_group(groups, {set, "surrogate-ibp"});
    table.rows.push_back({set, ours("residual"), std::string(paper.untrained_cp),
                          ours("surrogate-ibp"), surrogate ? surrogate->failed_text() : "",
                          std::string(paper.untrained_fcp), ours("nested"), ours("linearized")});
  }
  section.tables = {table, coverage_table(rows)};
  section.figures = {
      relative_length_figure(rows, "residual", {"surrogate-ibp", "nested", "linearized"})};
}

}  // namespace

Experiment untrained_networks() {
  Experiment experiment;
  experiment.name = "untrained";
  experiment.title = "Untrained networks";
  experiment.claim =
      "over a network that was not trained Feature CP is no shorter than vanilla CP: it lives on "
      "what the features have learned.";
  experiment.sets = one_dimensional_sets();
  experiment.quick_sets = {"demo"};
  experiment.methods = untrained_methods();
  experiment.run = run_untrained;
  experiment.present = present_untrained;
  experiment.readings = {
      "As in the paper: over networks that were not trained, `nested` and the paper's score "
      "are as long as vanilla CP, within two deviations on every set, and vary more from "
      "seed to seed. What feature space gains, it gains from training.",
      "Untrained networks answer almost a constant, so that lengths are those of the "
      "response itself. On bio and bike no number of steps up to 200 reaches 90 % with the "
      "step size of the official code."};
  return experiment;
}

}  // namespace fcp

// Networks as they were initialised: the paper's table on untrained base models.
#include <nlohmann/json.hpp>

#include "apps/experiments/paper_numbers.h"
#include "apps/experiments/registry.h"
#include "apps/experiments/regression.h"
#include "apps/experiments/result_rows.h"
#include "apps/experiments/set_tables.h"

namespace fcp {
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

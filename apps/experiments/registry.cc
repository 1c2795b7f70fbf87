#include "apps/experiments/registry.h"

#include <algorithm>

#include "fcp/base/error.h"

namespace fcp {
namespace {

void check_names(const char* option, const std::vector<std::string>& given,
                 std::vector<std::string> known, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  }
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.empty()) fail_option(option, "this experiment has none to choose from");
    std::string names;
    for (const std::string& other : known) names += (names.empty() ? "" : ", ") + other;
    fail_option(option, "this experiment has no '", name, "', only ", names);
  }
}

}  // namespace

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      worked_example(),     regression_experiment(), cqr_experiment(),
      coverage_levels(),    untrained_networks(),    cut_ablation(),
      cubic_conditions(),   score_distribution(),    zero_quantile(),
      length_variance(),    length_convergence(),    classification_experiment(),
      classification_cuts()};
  return all;
}

const Experiment* find_experiment(const std::string& name, const std::vector<Experiment>& among) {
  for (const Experiment& experiment : among) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

std::vector<const Experiment*> choose_experiments(const std::string& name,
                                                  const ExperimentOptions& options,
                                                  const std::vector<Experiment>& among) {
  if (name != "all") {
    const Experiment& experiment = *find_experiment(name, among);
    check_names("sets", options.sets, experiment.sets, experiment.quick_sets);
    check_names("methods", options.methods, experiment.methods, {});
    if (options.quick && experiment.quick_sets.empty()) {
      fail_option("quick", "all of ", name, " needs external data");
    }
    return {&experiment};
  }
  if (!options.sets.empty()) fail_option("sets", "goes with one experiment, not with all");
  if (!options.methods.empty()) fail_option("methods", "goes with one experiment, not with all");
  std::vector<const Experiment*> chosen;
  for (const Experiment& experiment : among) {
    if (!options.quick || !experiment.quick_sets.empty()) chosen.push_back(&experiment);
  }
  return chosen;
}

}  // namespace fcp

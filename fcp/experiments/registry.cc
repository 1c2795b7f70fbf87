#include "fcp/experiments/registry.h"

namespace fcp {

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

}  // namespace fcp

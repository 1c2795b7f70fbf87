// All experiments, in the order of the page.
#pragma once

#include <string>
#include <vector>

#include "apps/experiments/experiment.h"

namespace fcp {

const std::vector<Experiment>& experiments();

// Nothing where there is none of this name.
const Experiment* find_experiment(const std::string& name,
                                  const std::vector<Experiment>& among = experiments());

// The experiment of this name, or with "all" every one that the options leave something to do.
// Sets or methods that it does not have are an OptionError.
std::vector<const Experiment*> choose_experiments(const std::string& name,
                                                  const ExperimentOptions& options,
                                                  const std::vector<Experiment>& among);

// Each in the file of its name.
Experiment worked_example();
Experiment regression_experiment();
Experiment cqr_experiment();
Experiment classification_experiment();
Experiment classification_cuts();
Experiment coverage_levels();
Experiment cubic_conditions();
Experiment untrained_networks();
Experiment cut_ablation();
Experiment score_distribution();
Experiment zero_quantile();
Experiment length_variance();
Experiment length_convergence();

}  // namespace fcp

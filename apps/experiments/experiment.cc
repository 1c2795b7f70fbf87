#include "apps/experiments/experiment.h"

#include <nlohmann/json.hpp>

namespace fcp {
namespace {

constexpr uint64_t kSeedsOfReadings = 5;

// The readings are about this run and no other.
bool is_full_run(const ExperimentOptions& options) {
  return !options.quick && options.seed == 0 && options.seeds == kSeedsOfReadings &&
         options.sets.empty() && options.methods.empty() && options.epochs == 0 &&
         options.rate == 0 && options.level == Level(0.1);
}

}  // namespace

std::string CellKey::text() const {
  return part.empty() ? concat(set, "-", seed) : concat(set, "-", part);
}

std::vector<std::string> sets_of(const Experiment& experiment, const ExperimentOptions& options) {
  if (!options.sets.empty()) return options.sets;
  return options.quick ? experiment.quick_sets : experiment.sets;
}

std::vector<std::string> methods_of(const Experiment& experiment,
                                    const ExperimentOptions& options) {
  return options.methods.empty() ? experiment.methods : options.methods;
}

std::vector<CellKey> cells_of(const Experiment& experiment, const ExperimentOptions& options) {
  std::vector<CellKey> cells;
  for (const std::string& set : sets_of(experiment, options)) {
    if (experiment.shape == CellShape::kSet) cells.push_back({set, options.seed});
    if (experiment.shape == CellShape::kSetAndSeed) {
      const uint64_t seeds = options.quick ? 1 : options.seeds;
      for (uint64_t i = 0; i < seeds; ++i) cells.push_back({set, options.seed + i});
    }
    if (experiment.shape == CellShape::kSetAndMethod) {
      for (const std::string& method : methods_of(experiment, options)) {
        cells.push_back({set, options.seed, method});
      }
    }
  }
  return cells;
}

ResultSection section_of(const Experiment& experiment, const ExperimentOptions& options,
                         const Json& rows) {
  ResultSection section;
  section.id = experiment.name;
  section.title = experiment.title;
  section.claim = experiment.claim;
  if (is_full_run(options)) section.readings = experiment.readings;
  if (!rows.empty()) experiment.present(rows, options, section);
  return section;
}

}  // namespace fcp

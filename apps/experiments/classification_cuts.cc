// The cut of a classifier moved backwards: the paper's ablation on large networks. A residual block
// cannot be cut inside, so the last one, three and five layers stand for its one, two and three.
#include <map>

#include <nlohmann/json.hpp>

#include "apps/experiments/classification.h"
#include "apps/experiments/classification_sets.h"
#include "apps/experiments/registry.h"
#include "apps/experiments/result_rows.h"

namespace fcp {
namespace {

constexpr int64_t kRowsOfAHalf = 400;
constexpr uint64_t kCutHalvings = 3;

const std::map<std::string, int>& layers_of_head() {
  static const std::map<std::string, int> layers = {{"last1", 1}, {"last3", 3}, {"last5", 5}};
  return layers;
}

Json run_label_cut(const CellKey& key, const ExperimentOptions& options) {
  ClassificationData data;
  try {
    data =
        load_cifar_cut(key.set, options.data_dir, layers_of_head().at(key.part), 2 * kRowsOfAHalf);
  } catch (const Error& error) {
    throw MissingData(error.what());
  }
  ClassificationOptions labels;
  labels.methods = {"feature_margin"};
  labels.levels = {Level(options.level.value() / 2)};
  labels.halvings = kCutHalvings;
  labels.seed = options.seed;
  Json rows = Json::array();
  for (const ClassificationCell& cell : run_classification(data, labels)) {
    Json row = {
        {"set", key.set}, {"head", key.part}, {"alpha", cell.level}, {"halving", cell.halving}};
    if (cell.failed.empty()) {
      row["coverage"] = cell.coverage;
      row["size"] = cell.size;
      row["seconds"] = cell.seconds;
    } else {
      row["failed"] = cell.failed;
    }
    rows.push_back(row);
  }
  return rows;
}

void present_label_cuts(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  section.setup = concat("`feature_margin`, ", kRowsOfAHalf, " rows a half, ", kCutHalvings,
                         " halvings. Coverage % / mean size.");
  const std::vector<RowGroup> groups = group_rows(rows, {"set", "head"});
  ResultTable table{"Layers of the head", {"network", "last layer", "last three", "last five"}, {}};
  for (const std::string& set : values_of(rows, "set")) {
    std::vector<std::string> line = {set};
    for (const auto& [head, layers] : layers_of_head()) {
      line.push_back(concat(percent_text(spread_at(groups, {set, head}, "coverage")), " / ",
                            spread_text(spread_at(groups, {set, head}, "size"), 2)));
    }
    table.rows.push_back(line);
  }
  table.rows.push_back({"the paper: ImageNet, α = 0.1, last one, two, three",
                        "90.0 ± 0.2 / 3.32 ± 0.10", "90.1 ± 0.5 / 3.26 ± 0.03",
                        "90.0 ± 0.3 / 3.30 ± 0.01"});
  section.tables = {table};
}

}  // namespace

Experiment classification_cuts() {
  Experiment experiment;
  experiment.name = "classification-cuts";
  experiment.title = "The cut of a classifier";
  experiment.claim = "coverage and size hardly depend on where a large network is cut.";
  experiment.sets = {"cifar10-resnet20", "cifar10-resnet56"};
  for (const auto& [head, layers] : layers_of_head()) experiment.methods.push_back(head);
  experiment.shape = CellShape::kSetAndMethod;
  experiment.run = run_label_cut;
  experiment.present = present_label_cuts;
  experiment.readings = {
      "Differences are within the noise of so few rows, as in the paper. Bounds of a "
      "three-layer head take 7 s a halving, of a five-layer one 11 s; sampling them took "
      "more than two minutes a halving and is not run."};
  return experiment;
}

}  // namespace fcp

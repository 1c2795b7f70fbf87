// The paper's example for its theorem on efficiency: five samples whose lengths in feature space
// lie closer together than those in output space, so that the quantile costs less there.
//
//   vanilla CP   Q(IL_o) for every sample                       4.0
//   Feature CP   mean over samples of H(Q(IL_f))                3.1
//
// H is known at the two feature lengths the paper prints for each sample. Its quantile is the rank
// ⌈(1 − α) n⌉. Tested by tests/experiments/small_experiments_test.cc.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "apps/experiments/registry.h"
#include "apps/experiments/result_rows.h"

namespace fcp {
namespace {

struct ExampleSample {
  const char* name;
  double output_length;   // IL_o
  double feature_length;  // IL_f
  double own_band;        // H(IL_f)
  double quantile_band;   // H(1.3)
};

constexpr std::array<ExampleSample, 5> kSamples = {{{"A", 1.0, 1.1, 1.2, 1.4},
                                                    {"B", 2.0, 1.2, 2.1, 2.3},
                                                    {"C", 3.0, 1.1, 2.8, 3.1},
                                                    {"D", 4.0, 1.3, 3.8, 3.8},
                                                    {"E", 5.0, 1.6, 5.2, 4.9}}};
constexpr size_t kRank = 4;  // ⌈0.8 · 5⌉

double example_quantile(double ExampleSample::*length) {
  std::array<double, kSamples.size()> sorted;
  std::transform(kSamples.begin(), kSamples.end(), sorted.begin(),
                 [&](const ExampleSample& sample) { return sample.*length; });
  std::sort(sorted.begin(), sorted.end());
  return sorted[kRank - 1];
}

Json run_example(const CellKey&, const ExperimentOptions&) {
  Json rows = Json::array();
  for (const ExampleSample& sample : kSamples) {
    rows.push_back({{"sample", sample.name},
                    {"output_length", sample.output_length},
                    {"vanilla_band", example_quantile(&ExampleSample::output_length)},
                    {"feature_length", sample.feature_length},
                    {"own_band", sample.own_band},
                    {"feature_quantile", example_quantile(&ExampleSample::feature_length)},
                    {"feature_band", sample.quantile_band}});
  }
  return rows;
}

void present_example(const Json& rows, const ExperimentOptions&, ResultSection& section) {
  ResultTable table{"Individual lengths (IL), their 80 % quantiles (Q) and bands (H)",
                    {"sample", "IL_o", "Q(IL_o)", "IL_f", "H(IL_f)", "Q(IL_f)", "H(Q(IL_f))"},
                    {}};
  std::vector<double> vanilla, feature;
  for (const Json& row : rows) {
    vanilla.push_back(number_of(row, "vanilla_band"));
    feature.push_back(number_of(row, "feature_band"));
    std::vector<std::string> line = {text_of(row, "sample")};
    for (const char* field : {"output_length", "vanilla_band", "feature_length", "own_band",
                              "feature_quantile", "feature_band"}) {
      line.push_back(fixed_text(number_of(row, field), 1));
    }
    table.rows.push_back(line);
  }
  table.rows.push_back({"mean", "", fixed_text(spread_of(vanilla).mean, 1), "", "", "",
                        fixed_text(spread_of(feature).mean, 1)});
  table.rows.push_back({"the paper", "", "4.0", "", "", "", "3.1"});
  section.tables.push_back(table);
  section.setup =
      "The paper's quantile is the rank ⌈(1 − α)n⌉ = 4 of 5. The rank that guarantees coverage of "
      "a "
      "new sample, ⌈(1 − α)(n + 1)⌉ = 5, would take the largest of each.";
}

}  // namespace

Experiment worked_example() {
  Experiment experiment;
  experiment.name = "example";
  experiment.title = "The worked example";
  experiment.claim =
      "five samples A to E; the mean band of vanilla CP is 4.0, of Feature CP 3.1, because "
      "lengths lie closer to their quantile in feature space.";
  experiment.sets = {"example"};
  experiment.quick_sets = experiment.sets;
  experiment.shape = CellShape::kSet;
  experiment.run = run_example;
  experiment.present = present_example;
  experiment.readings = {"The numbers are the paper's, to the digit."};
  return experiment;
}

}  // namespace fcp

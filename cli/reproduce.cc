// fcp reproduce: the paper's experiments.
#include <algorithm>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/progress.h"
#include "fcp/experiments/classification.h"
#include "fcp/experiments/classification_sets.h"
#include "fcp/experiments/regression.h"
#include "fcp/report/format.h"
#include "fcp/report/json.h"
#include "fcp/report/table.h"

#include "cli/common.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct ReproduceOptions {
  CommonOptions common;
  std::string experiment;
  RegressionOptions regression;
  std::string alpha = "0.1";
  std::vector<std::string> sets;  // empty: all of the experiment
  uint64_t halvings = 20;
  double rate = 0.1;  // of feature_sampled's search
  uint64_t seeds = 5;
};

nlohmann::ordered_json cell_json(const RegressionCell& cell) {
  nlohmann::ordered_json json = {{"set", cell.set},           {"method", cell.method},
                                 {"seed", cell.seed},         {"note", cell.note},
                                 {"coverage", cell.coverage}, {"length", json_number(cell.length)},
                                 {"seconds", cell.seconds}};
  json["worst_third_coverage"] = cell.worst_third;
  json["empty"] = cell.empty;
  if (cell.detection) json["detection_coverage"] = *cell.detection;
  if (!cell.failed.empty()) json["failed"] = cell.failed;
  return json;
}

void print_summaries(const std::vector<RegressionCell>& cells) {
  Table table({"set", "method", "detection", "coverage", "worst third", "length", "±", "seconds",
               "failed"});
  std::string set;
  for (const RegressionSummary& summary : summarize(cells)) {
    if (!set.empty() && summary.set != set) table.add_gap();
    set = summary.set;
    const bool any = summary.seeds > 0;
    table.add_row(
        {summary.set, summary.method, summary.detection ? format_percent(*summary.detection) : "",
         any ? format_percent(summary.coverage) : "–",
         any ? format_percent(summary.worst_third) : "–", any ? format_number(summary.length) : "–",
         any ? format_number(summary.length_deviation, 2) : "–",
         any ? format_number(summary.seconds, 2) : "–",
         summary.failed > 0 ? std::to_string(summary.failed) : ""});
  }
  std::cout << table;
}

void check_names(const char* option, const std::vector<std::string>& given,
                 const std::vector<std::string>& known) {
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string names;
    for (const std::string& other : known) names += (names.empty() ? "" : ", ") + other;
    throw UsageError(concat(option, ": this experiment has no '", name, "', only ", names));
  }
}

void settle_methods(ReproduceOptions& options) {
  const bool quantiles = options.experiment == "cqr";
  const std::vector<std::string>& known = quantiles ? quantile_methods() : regression_methods();
  if (options.regression.methods.empty()) options.regression.methods = known;
  check_names("--methods", options.regression.methods, known);
  if (options.sets.empty()) {
    options.sets = regression_sets();
    if (quantiles) std::erase(options.sets, "synthetic");
  }
  check_names("--sets", options.sets, regression_sets());
}

nlohmann::ordered_json label_json(const std::string& set, const ClassificationSummary& summary) {
  nlohmann::ordered_json json = {{"set", set},
                                 {"method", summary.method},
                                 {"alpha", summary.level},
                                 {"halvings", summary.halvings},
                                 {"failed", summary.failed},
                                 {"coverage", summary.coverage},
                                 {"size", summary.size},
                                 {"size_deviation", summary.size_deviation},
                                 {"worst_stratum_coverage", summary.worst_stratum},
                                 {"seconds", summary.seconds}};
  if (summary.detection) json["detection_coverage"] = *summary.detection;
  return json;
}

// Label sets over random halvings of the rows.
void run_label_sets(ReproduceOptions& options) {
  if (options.sets.empty()) options.sets = classification_sets();
  check_names("--sets", options.sets, classification_sets());
  ClassificationOptions settings;
  if (!options.regression.methods.empty()) settings.methods = options.regression.methods;
  check_names("--methods", settings.methods, classification_methods());
  settings.halvings = options.halvings;
  settings.score.step_rate = options.rate;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  size_t done = 0;
  std::string left_out;
  for (const std::string& set : options.sets) {
    try {
      const ClassificationData data = load_classification_set(set, options.regression.data_dir);
      Progress progress(set, settings.methods.size() * settings.levels.size() * settings.halvings,
                        !options.common.quiet);
      const auto summaries = summarize(run_classification(
          data, settings, [&](const ClassificationCell&) { progress.advance(1); }));
      for (const ClassificationSummary& summary : summaries) {
        json.push_back(label_json(set, summary));
      }
      if (!options.common.json) std::cout << set << "\n\n" << markdown_table(summaries) << '\n';
      ++done;
    } catch (const Error& error) {
      say(options.common, concat(set, " is left out: ", error.what()));
      left_out = error.what();
    }
  }
  if (done == 0) fail("none of the sets could be run: ", left_out);
  if (options.common.json) std::cout << json_text(json) << '\n';
}

void run_reproduce(ReproduceOptions& options) {
  start(options.common);
  if (options.experiment == "classification") {
    run_label_sets(options);
    return;
  }
  settle_methods(options);
  options.regression.level = parse_level(options.alpha);
  std::vector<RegressionCell> cells;
  const size_t methods = options.regression.methods.size();
  Progress progress("reproduce", options.sets.size() * options.seeds * methods,
                    !options.common.quiet);
  std::string left_out;
  options.regression.observe = [&](const RegressionCell& cell) {
    progress.advance(1, [&] { return concat(cell.set, ", seed ", cell.seed, ", ", cell.method); });
  };
  for (const std::string& set : options.sets) {
    try {
      for (uint64_t seed = options.common.seed; seed < options.common.seed + options.seeds;
           ++seed) {
        const DataSet data = load_regression_set(set, options.regression.data_dir, seed);
        const auto more = run_regression(data, set, seed, options.regression);
        cells.insert(cells.end(), more.begin(), more.end());
      }
    } catch (const Error& error) {
      say(options.common, concat(set, " is left out: ", error.what()));
      left_out = error.what();
    }
  }
  if (cells.empty()) fail("none of the sets could be run: ", left_out);
  if (options.common.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const RegressionCell& cell : cells) json.push_back(cell_json(cell));
    std::cout << json_text(json) << '\n';
  } else {
    print_summaries(cells);
  }
}

}  // namespace

void add_reproduce(CLI::App& app) {
  auto options = std::make_shared<ReproduceOptions>();
  options->regression.methods.clear();  // settled by the experiment
  CLI::App* verb = app.add_subcommand("reproduce", "The paper's experiments");
  verb->footer(
      "Examples:\n  fcp reproduce regression --data-dir data --seeds 5 --sets community,synthetic\n"
      "  fcp reproduce cqr --data-dir data --seeds 5\n"
      "  fcp reproduce classification --data-dir data --sets cifar10-resnet20");
  verb->add_option("experiment", options->experiment,
                   "regression: CP and Feature CP on the paper's sets; cqr: CQR and Feature CQR; "
                   "classification: label sets")
      ->required()
      ->check(CLI::IsMember({"regression", "cqr", "classification"}));
  verb->add_option("--data-dir", options->regression.data_dir, "Folder of the paper's data sets");
  verb->add_option("--sets", options->sets, "Data sets; all by default")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--halvings", options->halvings, "classification: random halvings of the rows")
      ->capture_default_str();
  verb->add_option("--rate", options->rate, "classification: step size of feature_sampled")
      ->capture_default_str();
  verb->add_option("--methods", options->regression.methods, "Scores; all by default")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--epochs", options->regression.epochs, "Epochs of training, at most")
      ->capture_default_str();
  verb->add_option("--seeds", options->seeds, "Seeds, from --seed on")->capture_default_str();
  verb->add_option("--alpha", options->alpha, "Share of intervals that may miss the truth")
      ->capture_default_str();
  add_common(*verb, options->common);
  verb->callback([options] { run_reproduce(*options); });
}

}  // namespace fcp

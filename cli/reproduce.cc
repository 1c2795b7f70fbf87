// fcp reproduce: the paper's experiments.
#include <algorithm>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/progress.h"
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
  std::vector<std::string> sets = regression_sets();
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

void settle_methods(ReproduceOptions& options) {
  const bool quantiles = options.experiment == "cqr";
  const std::vector<std::string>& known = quantiles ? quantile_methods() : regression_methods();
  if (options.regression.methods.empty()) options.regression.methods = known;
  for (const std::string& method : options.regression.methods) {
    if (std::find(known.begin(), known.end(), method) != known.end()) continue;
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    throw UsageError(
        concat("--methods: ", options.experiment, " has no '", method, "', only ", names));
  }
  if (quantiles && options.sets == regression_sets()) std::erase(options.sets, "synthetic");
}

void run_reproduce(ReproduceOptions& options) {
  start(options.common);
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
      "  fcp reproduce cqr --data-dir data --seeds 5");
  verb->add_option("experiment", options->experiment,
                   "regression: CP and Feature CP on the paper's sets; cqr: CQR and Feature CQR")
      ->required()
      ->check(CLI::IsMember({"regression", "cqr"}));
  verb->add_option("--data-dir", options->regression.data_dir, "Folder of the paper's data sets");
  verb->add_option("--sets", options->sets, "Data sets")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(regression_sets()));
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

// fcp predict: intervals for new rows.
#include "fcp/predictor/predict.h"

#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/number.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/cli/print_report.h"

namespace fcp::cli {
namespace {

struct PredictFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  std::string model;
  LevelFlags levels;
  std::string keep;
  DistributionRequest distribution;
  std::string out = "-";
  bool flags = false;
  bool probabilities = false;
};

// The rows are told what no training row had where a table is read through the network's encoding.
void check_flags_column(const PredictFlags& flags, const Graph& network, const DataOptions& data) {
  if (!flags.flags || (network.metadata.contains(kEncodingKey) && !are_images(data) &&
                       !holds_array(file_list(data.data)[0]))) {
    return;
  }
  fail_option("flags", "takes a CSV file and a network that fcp trained on a table: ",
              network.metadata.contains(kEncodingKey)
                  ? concat(data.data, " is no table")
                  : "this one does not say what it was trained on");
}

// Thresholds that are columns of the table.
DistributionRequest with_columns(DistributionRequest request, const DataOptions& data) {
  for (const auto* thresholds : {&request.above, &request.below}) {
    for (const std::string& text : *thresholds) {
      double number = 0;
      if (parse_number(text, number)) continue;
      if (auto column = read_number_column(data, text)) request.columns[text] = std::move(*column);
    }
  }
  return request;
}

void add_distribution(CLI::App& verb, DistributionRequest& request) {
  const auto list = [&](const char* flag, std::vector<std::string>& values, const char* help) {
    verb.add_option(flag, values, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--quantiles", request.quantiles,
       "Quantiles of each row's predictive distribution to add, as 0.05,0.5,0.95");
  list("--above", request.above,
       "Adds the probability to exceed a number, or the row's number in a CSV column: its bounds");
  list("--below", request.below, "Adds the probability of at most a number, or a column's");
  list("--between", request.between, "Adds the probability above FROM and up to TO, as 10:30");
  verb.add_option("--point", request.point,
                  "The prediction: mean, median or a quantile as 0.3 of the distribution; by "
                  "default the network's");
  verb.add_option("--distribution", request.grid,
                  ".npy of the quantiles 0.01, …, 0.99 of each row, [rows, 99]");
}

void print_predicted(const PredictFlags& flags, const CalibrationArtifact& artifact,
                     const std::vector<Level>& levels, size_t rows) {
  if (!flags.common.json) {
    std::string text;
    for (const Level& level : levels) text += (text.empty() ? "" : ", ") + level.text();
    return say(flags.common, concat("predicted ", rows, " rows at alpha ", text));
  }
  nlohmann::ordered_json json = {{"rows", rows}};
  if (levels.size() == 1) {
    json["alpha"] = levels[0].value();
    json["radius"] = radius_json(artifact, levels[0]);
  } else {
    for (const Level& level : levels) {
      json["alpha"].push_back(level.value());
      json["radius"][level.text()] = radius_json(artifact, level);
    }
  }
  json["out"] = flags.out;
  std::cout << json.dump(2) << '\n';
}

void run_predict(const PredictFlags& flags) {
  if (flags.common.json && flags.out == "-") {
    throw UsageError("--json needs --out FILE, because the regions themselves go to stdout");
  }
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  const DataOptions data = data_options(flags.data);
  std::vector<Level> levels;
  CalibrationArtifact artifact = read_artifact_at(flags.model, flags.levels, levels);
  for (const Level& level : levels) {
    for (const std::string& warning : level_warnings(artifact, level)) {
      say(flags.common, "warning: " + warning);
    }
  }
  const auto source = open_data(data, &artifact.network, *context.observer);
  check_flags_column(flags, artifact.network, data);
  choose_device(artifact.network, *source, context);
  PredictOptions options{.levels = levels,
                         .facts = read_facts_for(artifact, data, flags.facts, *context.observer),
                         .probabilities = flags.probabilities};
  const internal::PredictorCore predictor(std::move(artifact), context.device);
  RegionFileOptions file{.levels = levels,
                         .kept = read_kept_columns(data, flags.keep),
                         .lines = flags.data.on_error == "skip",
                         .probabilities = flags.probabilities,
                         .flags = flags.flags};
  std::optional<DistributionColumns> distribution;
  if (!flags.distribution.empty()) {
    distribution.emplace(predictor.artifact(), with_columns(flags.distribution, data),
                         context.device);
    options.distribution = &*distribution;
    file.added = distribution->names();
  }
  const auto writer = open_region_file(flags.out, predictor.artifact(), std::move(file));
  const size_t rows = predict(predictor, *source, options, context, *writer);
  print_predicted(flags, predictor.artifact(), levels, rows);
}

}  // namespace

void add_predict(CLI::App& app) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app.add_subcommand("predict", "Intervals or label sets for new rows");
  verb->footer(
      "Examples:\n"
      "  fcp predict calibrated.onnx --data new.csv --alpha 0.1 --out intervals.csv\n"
      "  fcp predict calibrated.onnx --data new.npy --alpha 0.05 --out intervals.npy\n"
      "  fcp predict calibrated.onnx --data photos/ --out sets.csv\n"
      "  fcp predict calibrated.onnx --data new.csv --alpha 0.1,0.2 --keep id,name --out "
      "intervals.csv\n"
      "  fcp predict calibrated.onnx --data new.csv --quantiles 0.05,0.5,0.95 --above 30 --out "
      "distribution.csv\n"
      "  cat new.csv | fcp predict calibrated.onnx --data - --confidence 0.95 > intervals.csv\n"
      "CSV columns are prediction, lower, upper; an .npy holds [rows, outputs, 3] in that order.\n"
      "For labels: prediction, size, labels (joined by |); an .npy holds booleans [rows, "
      "classes].\n"
      "A name that ends in .json writes a list of objects, one that ends in .gz is packed. With\n"
      "--on-error skip a column 'line' comes first, the line of the file at which a row begins.");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data,
                   "Rows: CSV, .npy, .npz:entry, or a folder of images; - is standard input")
      ->required();
  add_levels(*verb, flags->levels, /*several=*/true);
  verb->add_option("--keep", flags->keep,
                   "CSV columns to write before the regions, as id,name; 'all' for all of them");
  verb->add_option("--out", flags->out, "CSV, .json or .npy file; - is standard output")
      ->capture_default_str();
  verb->add_flag("--flags", flags->flags,
                 "Tables: add a column that marks what no training row had: missing:COLUMN, "
                 "unseen:COLUMN (a category), range:COLUMN (far outside)");
  verb->add_flag("--probabilities", flags->probabilities,
                 "Labels: add a column p_CLASS for each class; of a predictor calibrated "
                 "with --probabilities venn-abers the calibrated ones, and the pairs "
                 "p0_CLASS, p1_CLASS");
  add_distribution(*verb, flags->distribution);
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/false);
  add_common(*verb, flags->common, kTakesJson | kTakesThreads | kTakesDevice);
  verb->callback([flags] { run_predict(*flags); });
}

}  // namespace fcp::cli

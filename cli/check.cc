// fcp check: band detection. For rows with answers: the score, its p-value, and whether it is in.
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/calibration/kept_levels.h"
#include "fcp/calibration/tensor_predictor.h"
#include "fcp/data/csv_writer.h"
#include "fcp/pipeline/answers.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/method_stream.h"

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct CheckOptions {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  std::string model;
  std::string alpha = "0.1";
  std::string out = "-";
};

std::vector<std::string> check_columns(int64_t sides) {
  if (sides == 1) return {"score", "p_value", "in"};
  return {"score_low", "score_high", "p_value", "in"};
}

void run_check(const CheckOptions& options) {
  if (options.common.json && options.out == "-") {
    throw UsageError("--json needs --out FILE, because the rows themselves go to stdout");
  }
  Context context = start(options.common);
  context.batch = options.data.batch;
  const DataOptions data = data_options(options.data);
  torch::NoGradGuard no_grad;
  const Level level = parse_level(options.alpha);
  const CalibrationArtifact artifact = read_artifact_for(options.model, {&level, 1});
  if (const auto missing = missing_scores(artifact.rows.levels)) {
    fail(options.model, ": ", *missing, "; the p-values of check need all scores");
  }
  const auto source = open_data(data, &artifact.network);
  const RowFacts facts = read_facts_for(artifact, data, options.facts, *context.observer);
  const TensorPredictor predictor(artifact, context.device);
  CsvWriter writer(options.out, check_columns(predictor.score().sides()));
  const size_t batch = context.batch_for(*source);
  Stage stage(context, "check", source->size().value_or(0));
  size_t done = 0;
  size_t inside = 0;
  for (Rows rows; source->next(batch, rows);) {
    check_interrupted();
    const TestInputs fresh = predictor.describe(
        view(rows.x),
        side_information(facts, artifact.rows.group_names.size(), done, rows.x.rows()));
    const Conformity judged =
        judge_numbers(predictor, fresh, view(rows.y), *source, rows.first_row);
    const std::vector<bool> in =
        within_radii(predictor, fresh, view(rows.y), judged.scores, level, artifact.score.paper);
    const auto sides = static_cast<size_t>(predictor.score().sides());
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t side = 0; side < sides; ++side) {
        writer.cell(static_cast<float>(judged.scores[i * sides + side]));
      }
      writer.cell(static_cast<float>(judged.p_values[i]));
      writer.cell(int64_t{in[i]});
      writer.end_row();
      inside += in[i] ? 1 : 0;
    }
    done += in.size();
    stage.advance(rows.x.rows());
  }
  check_facts(facts, done);
  if (done == 0) fail(options.data.data, ": has no rows to check");
  writer.close();
  if (options.common.json) {
    std::cout
        << nlohmann::ordered_json{{"rows", done}, {"in", inside}, {"alpha", level.value()}}.dump(2)
        << '\n';
  } else {
    say(options.common, concat(inside, " of ", done, " rows are in at alpha ", level.text()));
  }
}

}  // namespace

void add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = app.add_subcommand("check", "Score, p-value, in or out, for rows with answers");
  verb->footer(
      "Example:\n  fcp check calibrated.onnx --data rows.csv --target y --out checked.csv");
  verb->add_option("model", options->model, "Calibrated predictor")->required();
  verb->add_option("--data", options->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--alpha", options->alpha, "Level at which a row is in")->capture_default_str();
  verb->add_option("--out", options->out, "CSV file; - is standard output")->capture_default_str();
  add_facts(*verb, options->facts);
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_check(*options); });
}

}  // namespace fcp

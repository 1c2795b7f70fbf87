// fcp check: band detection. For rows with answers: the score, its p-value, and whether it is in.
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/base/progress.h"
#include "fcp/calibration/predictor.h"
#include "fcp/conformal/p_value.h"
#include "fcp/data/csv_writer.h"

#include "cli/steps.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct CheckOptions {
  CommonOptions common;
  DataOptions data;
  std::string model;
  std::string alpha = "0.1";
  std::string out = "-";
};

void run_check(const CheckOptions& options) {
  if (options.common.json && options.out == "-") {
    throw UsageError("--json needs --out FILE, because the rows themselves go to stdout");
  }
  const torch::Device device = start(options.common);
  torch::NoGradGuard no_grad;
  const Level level = parse_level(options.alpha);
  const Calibrated calibrated = read_calibrated(options.model);
  const auto source = open_data(options.data, &calibrated.network);
  const Predictor predictor(calibrated.network, calibrated.score, calibrated.cut, device);
  const double radius = calibrated.radius(level);
  CsvWriter writer(options.out, {"score", "p_value", "in"});
  const size_t batch = batch_rows(options.data, *source);
  Progress progress("check", source->size().value_or(0), !options.common.quiet);
  size_t done = 0;
  size_t inside = 0;
  for (Rows rows; source->next(batch, rows);) {
    check_interrupted();
    for (const double score :
         predictor.score().score(predictor.features(view(rows.x)), view(rows.y))) {
      // The paper's code detects strictly.
      const bool in = calibrated.score.paper ? score < radius : score <= radius;
      writer.cell(static_cast<float>(score));
      writer.cell(static_cast<float>(conformal_p_value(calibrated.scores, score).value()));
      writer.cell(int64_t{in});
      writer.end_row();
      inside += in ? 1 : 0;
      ++done;
    }
    progress.advance(rows.x.rows());
  }
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
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_check(*options); });
}

}  // namespace fcp

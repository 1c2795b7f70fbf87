// fcp check: band detection. For rows with answers: the score, its p-value, and whether it is in.
#include <iostream>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/csv_writer.h"
#include "fcp/evaluate/judge.h"
#include "fcp/predictor/device_choice.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/predict.h"

#include "apps/cli/common.h"
#include "apps/cli/data_flags.h"
#include "apps/cli/level_flags.h"
#include "apps/cli/verbs.h"

namespace fcp::cli {
namespace {

struct CheckFlags {
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

void run_check(const CheckFlags& flags) {
  if (flags.common.json && flags.out == "-") {
    throw UsageError("--json needs --out FILE, because the rows themselves go to stdout");
  }
  Context context = start(flags.common);
  context.batch = flags.data.batch;
  DataOptions data = data_options(flags.data);
  const Level level = parse_level(flags.alpha);
  say_lax_level(flags.common, level);
  CalibrationArtifact artifact = read_artifact_for_p_values(flags.model, level);
  take_target(artifact, data);
  const auto source = open_data(data, &artifact.network, *context.observer);
  choose_device(artifact.network, *source, context);
  const CheckOptions options{
      .level = level, .facts = read_facts_for(artifact, data, flags.facts, *context.observer)};
  CsvWriter writer(flags.out, check_columns(artifact.rows.sides));
  const auto write = [&](const CheckedRow& row) {
    for (const double score : row.scores) writer.cell(static_cast<float>(score));
    writer.cell(static_cast<float>(row.p_value));
    writer.cell(int64_t{row.in});
    writer.end_row();
  };
  const internal::PredictorCore predictor(std::move(artifact), context.device);
  const CheckResult result = check(predictor, *source, options, context, write);
  writer.close();
  if (flags.common.json) {
    const nlohmann::ordered_json json = {
        {"rows", result.rows}, {"in", result.in}, {"alpha", level.value()}};
    std::cout << json.dump(2) << '\n';
  } else {
    say(flags.common,
        concat(result.in, " of ", result.rows, " rows are in at alpha ", level.text()));
  }
}

}  // namespace

void add_check(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* verb = app.add_subcommand("check", "Score, p-value, in or out, for rows with answers");
  verb->footer(
      "Example:\n  fcp check calibrated.onnx --data rows.csv --target y --out checked.csv");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  verb->add_option("--alpha", flags->alpha, "Level at which a row is in")->capture_default_str();
  verb->add_option("--out", flags->out, "CSV file; - is standard output")->capture_default_str();
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/true);
  add_common(*verb, flags->common, kTakesJson | kTakesThreads | kTakesDevice);
  verb->callback([flags] { run_check(*flags); });
}

}  // namespace fcp::cli

// fcp evaluate: how the intervals of a calibrated predictor do on rows with known answers.
#include "fcp/pipeline/evaluate.h"

#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/output_file.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/evaluate_sets.h"
#include "fcp/pipeline/levels.h"
#include "fcp/pipeline/shared_batches.h"
#include "fcp/report/html.h"
#include "fcp/report/json.h"
#include "fcp/report/label_html.h"

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/print_report.h"
#include "cli/verbs.h"

namespace fcp {
namespace {

struct EvaluateOptions {
  CommonOptions common;
  DataFlags data;
  std::string model;
  std::string alpha = "0.1";
  FactOptions facts;
  std::string report;
};

// Tells the report in all the ways asked for.
template <typename Report>
void finish(Report& report, const EvaluateOptions& options, std::string html(const Report&),
            nlohmann::ordered_json json(const Report&)) {
  if (options.common.ranks->rank() != 0) return;
  report.provenance.emplace_back("test data", data_file_names(data_options(options.data)));
  if (!options.report.empty()) write_file(options.report, html(report));
  for (const std::string& note : report.notes) say(options.common, "warning: " + note);
  if (options.common.json) {
    std::cout << json(report).dump(2) << '\n';
    return;
  }
  print_methods(report);
  if (!options.report.empty()) std::cout << "report: " << options.report << '\n';
}

void run_evaluate(const EvaluateOptions& options) {
  Context context = start(options.common);
  context.batch = options.data.batch;
  const DataOptions data = data_options(options.data);
  const Level level = parse_level(options.alpha);
  const CalibrationArtifact artifact = read_artifact_for(options.model, {&level, 1});
  if (options.common.ranks->size() > 1) {
    check_same_bytes(*options.common.ranks, options.model,
                     serialize_onnx(artifact_graph(artifact)));
  }
  const auto source = open_data(data, &artifact.network);
  const RowFacts facts = read_facts_for(artifact, data, options.facts, *context.observer);
  if (predicts_labels(artifact.score.name)) {
    LabelReport report = evaluate_sets(artifact, *source, data, level, facts, context);
    finish(report, options, label_report_html, label_report_json);
  } else {
    IntervalReport report = evaluate_rows(artifact, *source, level, facts, context);
    finish(report, options, interval_report_html, interval_report_json);
  }
}

}  // namespace

void add_evaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* verb =
      app.add_subcommand("evaluate", "Coverage, and length or size, on rows with known answers");
  verb->footer(
      "Example:\n"
      "  fcp evaluate calibrated.onnx --data test.csv --target y --alpha 0.1 --report report.html\n"
      "  mpirun -n 4 fcp evaluate calibrated.onnx --data x.npy --target y.npy --threads 1");
  verb->add_option("model", options->model, "Calibrated predictor")->required();
  verb->add_option("--data", options->data.data,
                   "Rows: CSV, .npy, .npz:entry, or a folder of images")
      ->required();
  verb->add_option("--alpha", options->alpha, "Share of regions that may miss the truth")
      ->capture_default_str();
  add_facts(*verb, options->facts);
  verb->add_option("--report", options->report, "HTML report to write");
  add_data(*verb, options->data, /*needs_target=*/true);
  add_common(*verb, options->common);
  verb->callback([options] { run_shared(options->common, [&] { run_evaluate(*options); }); });
}

}  // namespace fcp

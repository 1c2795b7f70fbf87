// fcp explain: which columns predictions and the lengths of their regions depend on.
#include "fcp/evaluate/explain.h"

#include <iostream>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/output_file.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/levels.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"
#include "apps/report/explanation_report.h"
#include "apps/report/json.h"

namespace fcp::cli {
namespace {

struct ExplainFlags {
  CommonOptions common;
  DataFlags data;
  FactOptions facts;
  std::string model;
  LevelFlags levels;
  ExplainOptions options;
  std::string report;
};

void run_explain(const ExplainFlags& flags) {
  Context context = start(flags.common);
  const DataOptions data = data_options(flags.data);
  ExplainOptions options = flags.options;
  options.level = levels_of(flags.levels)[0];
  CalibrationArtifact artifact = read_artifact_for(flags.model, {&options.level, 1});
  const auto source = open_data(data, &artifact.network, *context.observer);
  choose_device(artifact.network, *source, context);
  options.facts = read_facts_for(artifact, data, flags.facts, *context.observer);
  const internal::PredictorCore predictor(std::move(artifact), context.device);
  const Explanation found = explain(predictor, *source, options, context);
  if (!flags.report.empty()) {
    write_file(flags.report, explanation_html(found, {{"predictor", file_name_of(flags.model)},
                                                      {"rows", data_file_names(data)}}));
  }
  if (flags.common.json) {
    std::cout << json_text(explanation_json(found)) << '\n';
  } else {
    std::cout << explanation_text(found);
    if (!flags.report.empty()) std::cout << "report: " << flags.report << '\n';
  }
}

}  // namespace

void add_explain(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* verb =
      app.add_subcommand("explain", "Explain which columns move predictions and widen intervals");
  verb->footer(
      "Example:\n"
      "  fcp explain calibrated.onnx --data rows.csv --report why.html\n"
      "Of each column: how far prediction and length change where its values are shuffled among "
      "the\n"
      "rows. Of the rows with the longest intervals: the columns that widen them, compared with "
      "the\n"
      "column at its training mean. Columns that depend on each other share what they do.");
  verb->add_option("model", flags->model, "Calibrated predictor")->required();
  verb->add_option("--data", flags->data.data, "Rows: CSV, .npy or .npz:entry")->required();
  add_levels(*verb, flags->levels);
  verb->add_option("--rows", flags->options.rows, "Rows to look at, from the beginning")
      ->check(CLI::Range(size_t{2}, size_t{100'000}))
      ->capture_default_str();
  verb->add_option("--shuffles", flags->options.shuffles, "Shuffles of each column")
      ->check(CLI::Range(size_t{1}, size_t{1000}))
      ->capture_default_str();
  verb->add_option("--widest", flags->options.widest, "Rows to explain one by one")
      ->check(CLI::Range(size_t{0}, size_t{100'000}))
      ->capture_default_str();
  verb->add_option("--report", flags->report, "HTML page with a chart to write");
  add_facts(*verb, flags->facts);
  add_data(*verb, flags->data, /*needs_target=*/false);
  add_common(*verb, flags->common);
  verb->callback([flags] { run_explain(*flags); });
}

}  // namespace fcp::cli

// fcp demo: every step on built-in data, with every file it makes left behind to look at.
#include <filesystem>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/folds.h"
#include "fcp/experiments/synthetic.h"
#include "fcp/network/onnx_writer.h"
#include "fcp/pipeline/calibrate.h"
#include "fcp/pipeline/evaluate.h"
#include "fcp/pipeline/open_data.h"
#include "fcp/pipeline/predict.h"
#include "fcp/pipeline/train.h"
#include "fcp/report/console.h"
#include "fcp/report/html.h"
#include "fcp/report/json.h"

#include "cli/common.h"
#include "cli/verbs.h"

namespace fcp::cli {
namespace {

struct DemoOptions {
  CommonOptions common;
  std::string folder = "fcp-demo";
  std::string alpha = "0.1";
};

// The rows of one fold as a CSV file.
void write_fold(const DataSet& all, const std::vector<size_t>& rows, const std::string& path) {
  DataSet fold = all;
  fold.x = take_rows(all.x, rows);
  fold.y = take_rows(all.y, rows);
  write_csv(path, fold);
}

void run_demo(const DemoOptions& options) {
  const Context context = start(options.common);
  const Level level = parse_level(options.alpha);
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) fail(options.folder, ": cannot be made: ", error.message());
  const auto file = [&](const char* name) { return options.folder + "/" + name; };
  const bool talk = !options.common.json;
  const auto tell = [&](const std::string& line) {
    if (talk) std::cout << line << std::endl;
  };

  const DataSet data = demo_set(options.common.seed);
  const Folds folds = paper_folds(data.x.rows(), options.common.seed);
  write_fold(data, folds.training, file("train.csv"));
  write_fold(data, folds.calibration, file("calibration.csv"));
  write_fold(data, folds.test, file("test.csv"));
  const std::string& target = data.targets[0];
  const auto open = [&](const char* name, const Graph* network) {
    DataOptions rows;
    rows.data = file(name);
    rows.target = target;
    return open_data(rows, network);
  };

  tell(concat("$ fcp train ", file("train.csv"), " --target ", target, " --out ",
              file("model.onnx")));
  TabularOptions train;
  train.seed = options.common.seed;
  const TabularResult trained =
      train_table(*open("train.csv", nullptr), train, /*heads=*/true, context);
  write_onnx(trained.graph, file("model.onnx"));

  tell(concat("$ fcp calibrate ", file("model.onnx"), " --data ", file("calibration.csv"),
              " --target ", target, " --out ", file("calibrated.onnx")));
  CalibrateSettings settings;
  settings.level = level;
  settings.data_name = file("calibration.csv");
  settings.provenance = {{"network", "model.onnx"}, {"calibration data", "calibration.csv"}};
  const CalibrationArtifact artifact =
      calibrate(trained.graph, *open("calibration.csv", &trained.graph), settings, context)
          .artifact;
  write_artifact(artifact, file("calibrated.onnx"));

  tell(concat("$ fcp predict ", file("calibrated.onnx"), " --data ", file("test.csv"), " --alpha ",
              level.text(), " --out ", file("intervals.csv")));
  const auto intervals = open_region_file(file("intervals.csv"), artifact);
  predict(artifact, *open("test.csv", &artifact.network), {.level = level}, context, *intervals);

  tell(concat("$ fcp evaluate ", file("calibrated.onnx"), " --data ", file("test.csv"),
              " --target ", target, " --alpha ", level.text(), " --report ", file("report.html")));
  EvaluationReport report =
      evaluate(artifact, *open("test.csv", &artifact.network), {.level = level}, context);
  report.title = "fcp demo: minutes of a delivery";
  write_file(file("report.html"), report_html(report));
  if (options.common.json) {
    std::cout << json_text(report_json(report)) << '\n';
    return;
  }
  std::cout << '\n';
  print_report(std::cout, report);
  std::cout << "\nEverything is in " << options.folder << "/; open " << file("report.html") << '\n';
}

}  // namespace

void add_demo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* verb = app.add_subcommand(
      "demo", "Every step from a table to intervals on built-in data, and an HTML report");
  verb->footer("Example:\n  fcp demo --out fcp-demo");
  verb->add_option("--out", options->folder, "Folder for the files it makes")
      ->capture_default_str();
  verb->add_option("--alpha", options->alpha, "Share of intervals that may miss the truth")
      ->capture_default_str();
  add_common(*verb, options->common);
  verb->callback([options] { run_demo(*options); });
}

}  // namespace fcp::cli

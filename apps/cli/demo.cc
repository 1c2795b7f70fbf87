// fcp demo: `fcp fit` and `fcp predict` on built-in data, with every file left behind to look at.
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/base/output_file.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/split.h"
#include "fcp/fit/fit.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predict.h"

#include "apps/cli/common.h"
#include "apps/cli/print_report.h"
#include "apps/experiments/prepared_set.h"
#include "apps/report/json.h"
#include "apps/report/page.h"

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

// All rows, the parts for the steps by hand, and new rows without an answer.
void write_rows(const DemoOptions& options, const std::function<std::string(const char*)>& file) {
  const uint64_t seed = options.common.seed;
  const DataSet data = demo_set(seed);
  const Folds folds = paper_folds(data.x.rows(), seed);
  write_csv(file("deliveries.csv"), data);
  DataSet fresh = demo_set(seed + 1, 200);
  fresh.targets.clear();
  fresh.y = zeros({200, 0});
  write_csv(file("new.csv"), fresh);
  write_fold(data, folds.training, file("train.csv"));
  write_fold(data, folds.calibration, file("calibration.csv"));
  write_fold(data, folds.test, file("test.csv"));
}

void run_demo(const DemoOptions& options) {
  const Context context = start(options.common);
  const Level level = parse_level(options.alpha);
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) fail(options.folder, ": cannot be made: ", error.message());
  const auto file = [&](const char* name) { return options.folder + "/" + name; };
  const auto tell = [&](const std::string& line) {
    if (!options.common.json) std::cout << line << std::endl;
  };
  write_rows(options, file);

  const std::string alpha = level.text() == "0.1" ? "" : concat(" --alpha ", level.text());
  const std::string command = concat("fcp fit ", file("deliveries.csv"), " --target minutes --out ",
                                     file("model.onnx"), " --report ", file("report.html"), alpha);
  tell("$ " + command);
  FitRequest fitting;
  fitting.data.data = file("deliveries.csv");
  fitting.data.target = "minutes";
  fitting.level = level;
  fitting.all_levels = true;
  fitting.method.set("seed", options.common.seed);
  FitOutcome result = fit_table(fitting, context);
  result.report.model = "model.onnx";
  result.report.command = command;
  const CalibrationArtifact& artifact = result.calibrated.artifact;
  write_artifact(artifact, file("model.onnx"));
  write_file(file("report.html"), report_html(result.report));
  if (!options.common.json) {
    std::cout << fit_text(result, file("model.onnx"), file("report.html")) << '\n';
  }

  tell(concat("$ fcp predict ", file("model.onnx"), " --data ", file("new.csv"), " --out ",
              file("intervals.csv"), alpha));
  DataOptions fresh;
  fresh.data = file("new.csv");
  const auto intervals = open_region_file(file("intervals.csv"), artifact);
  predict(internal::PredictorCore(artifact, context.device), *open_data(fresh, &artifact.network),
          {.levels = {level}}, context, *intervals);
  if (options.common.json) {
    std::cout << json_text(fit_json(result, file("model.onnx"), file("report.html"))) << '\n';
    return;
  }
  std::cout << "\nEverything is in " << options.folder << "/; open " << file("report.html")
            << ". train.csv, calibration.csv and test.csv are another split of the rows, to try "
               "single steps on; do not evaluate model.onnx on them: it has seen rows of each\n";
}

}  // namespace

void add_demo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* verb =
      app.add_subcommand("demo", "Run fcp fit on built-in data and write an HTML report");
  verb->footer("Example:\n  fcp demo --out fcp-demo");
  verb->add_option("--out", options->folder, "Folder for the files it makes")
      ->capture_default_str();
  verb->add_option("--alpha", options->alpha, "Share of intervals that may miss the truth")
      ->capture_default_str();
  add_common(*verb, options->common);
  verb->callback([options] { run_demo(*options); });
}

}  // namespace fcp::cli

// The Feature CP stage for against_pytorch.py, so that it can take turns between fcp and PyTorch on
// the same machine, weights and data.
//
//   feature_cp prepare SET FOLDER DATA_DIR     folds, scaling and training of the paper, seed 0, as
//   .npy feature_cp serve FOLDER THREADS            then one job for each line of stdin
//
// Jobs: "stage RATE", "nested", "linearized"; "search RATE STEPS" where the
// folder holds head.onnx. The answer is one line: seconds of processor time (user and system, all
// threads), seconds on the wall, and the job's numbers. Results that are compared number by number
// are written to FOLDER as .npy by the first run of a job.
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/memory.h"
#include "fcp/calibrate/surrogate_steps.h"
#include "fcp/conformal/quantile.h"
#include "fcp/data/npy.h"
#include "fcp/data/scaling.h"
#include "fcp/data/split.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/scored_network.h"
#include "fcp/search/surrogate_search.h"
#include "fcp/training/train.h"

#include "apps/experiments/paper_sets.h"

namespace fcp {
namespace {

constexpr char kCut[] = "hidden2";

torch::Tensor read_rows(const std::string& path) {
  const Array array = read_npy(path);
  return torch::tensor(array.values).view(array.shape);
}

void write_rows(const std::string& path, const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.to(torch::kFloat).contiguous();
  const float* first = plain.data_ptr<float>();
  write_npy(path, {plain.sizes().vec(), {first, first + plain.numel()}});
}

void prepare(const std::string& set, const std::string& folder, const std::string& data_dir) {
  const DataSet data = load_paper_set(set, data_dir);
  const Folds folds = paper_folds(data.x.rows(), 0);
  const Array x = take_rows(data.x, folds.training), y = take_rows(data.y, folds.training);
  const Standardiser scaler = fit_standardiser(x);
  const double unit = target_scale(y);
  const auto write = [&](const char* name, const std::vector<size_t>& rows) {
    write_npy(folder + "/x_" + name + ".npy", standardise(scaler, take_rows(data.x, rows)));
    write_npy(folder + "/y_" + name + ".npy", divide(take_rows(data.y, rows), unit));
  };
  write("cal", folds.calibration);
  write("test", folds.test);
  TrainOptions options;
  options.scale = false;
  const TrainResult trained = train_network(standardise(scaler, x), divide(y, unit), options);
  write_onnx(trained.graph, folder + "/model.onnx");
  for (const auto& [name, tensor] : trained.graph.initializers) {
    write_rows(folder + "/" + name + ".npy", tensor);
  }
}

// The rows of a folder, and the jobs on them.
class Jobs {
 public:
  explicit Jobs(const std::string& folder) : folder_(folder) {
    if (!std::filesystem::exists(folder + "/model.onnx")) return;
    graph_ = read_onnx(folder + "/model.onnx");
    x_cal_ = read_rows(folder + "/x_cal.npy");
    y_cal_ = read_rows(folder + "/y_cal.npy").reshape({x_cal_.size(0), -1});
    x_test_ = read_rows(folder + "/x_test.npy");
    y_test_ = read_rows(folder + "/y_test.npy").reshape({x_test_.size(0), -1});
  }

  // Choose M, calibration scores, test bands, detection, as the official code does; the first fifth
  // of the calibration rows validates.
  std::string stage(double rate) {
    SurrogateOptions score{.steps = 1, .step_rate = rate, .paper = true};
    const ScoredNetwork predictor(graph_, score, kCut);
    const torch::Tensor z = predictor.features(x_cal_);
    const int64_t validation = z.size(0) / 5, rest = z.size(0) - validation;
    const StepsChoice choice =
        choose_steps(predictor.shared_head(), score,
                     {z.narrow(0, validation, rest), y_cal_.narrow(0, validation, rest),
                      z.narrow(0, 0, validation), y_cal_.narrow(0, 0, validation)},
                     Level(0.1));
    score.steps = choice.steps;
    const auto surrogate = make_score(score, predictor.shared_head());
    const double radius = conformal_quantile(surrogate->score(z, y_cal_), Level(0.1));
    const torch::Tensor z_test = predictor.features(x_test_);
    const Regions bands = surrogate->region(z_test, radius);
    size_t detected = 0;
    for (const double own : surrogate->score(z_test, y_test_)) detected += own < radius ? 1 : 0;
    keep("intervals", torch::cat({bands.lower, bands.upper}, 1));
    return concat(choice.steps, ' ', number(radius), ' ', detected);
  }

  std::string search(double rate, int steps) {
    if (!head_) {
      head_ = std::make_shared<const Network>(read_onnx(folder_ + "/head.onnx"));
      z_ = read_rows(folder_ + "/z.npy");
      y_ = read_rows(folder_ + "/y.npy");
    }
    const SurrogateSearch search(head_, 0, {.rate = rate});
    const torch::Tensor found = search.walk(z_, y_.flatten(1), steps);
    keep("features", found);
    return number(found.abs().mean().item<double>());
  }

  // Scores of the calibration rows, radius, intervals of the test rows.
  std::string intervals(const std::string& name) {
    const ScoredNetwork predictor(graph_, {.name = name}, kCut);
    const std::vector<double> scores = predictor.score().score(predictor.features(x_cal_), y_cal_);
    const double radius = conformal_quantile(scores, Level(0.1));
    const Regions bands = predictor.score().region(predictor.features(x_test_), radius);
    keep(name, torch::cat({bands.lower, bands.upper}, 1));
    return number(radius);
  }

 private:
  static std::string number(double value) {
    std::ostringstream text;
    text << std::setprecision(9) << value;
    return text.str();
  }

  void keep(const std::string& name, const torch::Tensor& result) const {
    const std::string path = folder_ + "/fcp_" + name + ".npy";
    if (!std::filesystem::exists(path)) write_rows(path, result);
  }

  std::string folder_;
  Graph graph_;
  torch::Tensor x_cal_, y_cal_, x_test_, y_test_;
  std::shared_ptr<const Network> head_;
  torch::Tensor z_, y_;
};

std::string answer(Jobs& jobs, const std::string& line) {
  std::istringstream words(line);
  std::string job;
  double rate = 0;
  int steps = 0;
  words >> job >> rate >> steps;
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  const std::string numbers = job == "stage"    ? jobs.stage(rate)
                              : job == "search" ? jobs.search(rate, steps)
                                                : jobs.intervals(job);
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double used = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  return concat(used, ' ', wall, ' ', numbers);
}

void serve(const std::string& folder, int threads) {
  keep_freed_memory();  // as the program does
  at::set_num_threads(threads);
  const torch::NoGradGuard no_grad;
  Jobs jobs(folder);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer(jobs, line) << std::endl;
  }
}

}  // namespace
}  // namespace fcp

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "prepare" && argc == 5) {
    fcp::prepare(argv[2], argv[3], argv[4]);
  } else if (mode == "serve" && argc == 4) {
    fcp::serve(argv[2], std::stoi(argv[3]));
  } else {
    std::cerr << "usage: feature_cp prepare SET FOLDER DATA_DIR | serve FOLDER THREADS\n";
    return 2;
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "feature_cp: " << error.what() << "\n";
  return 1;
}

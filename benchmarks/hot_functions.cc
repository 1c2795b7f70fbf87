// google-benchmark of the functions in which fcp spends its time, on the paper's perceptron (64
// features, 64 hidden units, one output) and float32 rows.
//
//   hot_functions [--benchmark_filter=…] [--threads=N]
//
// items/s are rows or numbers; where a function has an obvious count of bytes or operations,
// of_copy and of_gemm say which share of the machine's own peak it reaches: a copy of 64 MB and a
// product of 1024 × 1024 matrices, measured in the same run before everything else.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/memory.h"
#include "fcp/base/random.h"
#include "fcp/bounds/bounds.h"
#include "fcp/conformal/quantile.h"
#include "fcp/conformal/score_order.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/predictor_core.h"
#include "fcp/search/surrogate_search.h"
#include "fcp/training/ensemble_fit.h"
#include "fcp/training/heads.h"

#include "tests/nn/graphs.h"

namespace fcp {
namespace {

constexpr int64_t kRows = 20000;
constexpr size_t kScores = 10'000'000;

double best_seconds(const std::function<void()>& work) {
  double best = 1e300;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Bytes read and written a second by a copy that does not fit the caches.
double copy_peak() {
  static const double peak = [] {
    const std::vector<char> from(64'000'000, 1);
    std::vector<char> to(from.size());
    return 2.0 * static_cast<double>(from.size()) /
           best_seconds([&] { std::memcpy(to.data(), from.data(), from.size()); });
  }();
  return peak;
}

// Operations a second of a float32 matrix product.
double gemm_peak() {
  static const double peak = [] {
    const torch::Tensor a = torch::rand({1024, 1024}), b = torch::rand({1024, 1024});
    torch::Tensor c = torch::empty({1024, 1024});
    return 2.0 * 1024 * 1024 * 1024 / best_seconds([&] { torch::mm_out(c, a, b); });
  }();
  return peak;
}

void set_rate(benchmark::State& state, const char* name, double each_iteration, double peak) {
  const double share = each_iteration * static_cast<double>(state.iterations()) / peak;
  state.counters[name] = benchmark::Counter(share, benchmark::Counter::kIsRate);
}

void set_rows(benchmark::State& state, int64_t rows) {
  state.SetItemsProcessed(state.iterations() * rows);
}

// The paper's network and rows for it.
struct PaperNetwork {
  PaperNetwork() {
    torch::manual_seed(0);
    graph = make_mlp({64, 64, 64, 64, 1});
    for (auto& [name, tensor] : graph.initializers) {
      if (tensor.dim() == 2) tensor = torch::Tensor((torch::rand_like(tensor) - 0.5) / 4);
    }
    score = SurrogateOptions{.steps = 100};
    const ScoredNetwork predictor(graph, score, "h2");
    head = predictor.shared_head();
    x = torch::randn({kRows, 64});
    features = predictor.features(x);
    truth = head->forward(features) + torch::randn({kRows, 1});
  }
  static const PaperNetwork& get() {
    static const PaperNetwork paper;
    return paper;
  }

  Graph graph;
  ScoreOptions score;
  std::shared_ptr<const Network> head;
  torch::Tensor x, features, truth;
};

void peaks(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(copy_peak() + gemm_peak());
  state.counters["copy GB/s"] = copy_peak() / 1e9;
  state.counters["gemm Gflop/s"] = gemm_peak() / 1e9;
}
BENCHMARK(peaks)->Iterations(1);

void surrogate_walk(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const SurrogateSearch search(paper.head, 0);
  const auto steps = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(search.walk(paper.features, paper.truth, steps));
  set_rows(state, kRows);
  // What the steps would be as products: forwards and backwards through both layers.
  set_rate(state, "of_gemm", 2.0 * kRows * steps * (2 * 64 * 64 + 2 * 64), gemm_peak());
}
BENCHMARK(surrogate_walk)->Arg(1)->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);

void surrogate_distances_every_step(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const SurrogateSearch search(paper.head, 0);
  for (auto _ : state) {
    search.distances(paper.features, paper.truth, 64, DistanceOrder::kLargest,
                     [](int, const torch::Tensor&) { return true; });
  }
  set_rows(state, kRows);
}
BENCHMARK(surrogate_distances_every_step)->Unit(benchmark::kMillisecond);

void nested_score(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const auto score = make_score({}, paper.head);
  for (auto _ : state) benchmark::DoNotOptimize(score->score(paper.features, paper.truth));
  set_rows(state, kRows);
}
BENCHMARK(nested_score)->Unit(benchmark::kMillisecond);

void nested_region(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const auto score = make_score({}, paper.head);
  for (auto _ : state) benchmark::DoNotOptimize(score->region(paper.features, 0.2));
  set_rows(state, kRows);
}
BENCHMARK(nested_region)->Unit(benchmark::kMillisecond);

void linearized_score(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const auto score = make_score(LinearizedOptions{}, paper.head);
  for (auto _ : state) benchmark::DoNotOptimize(score->score(paper.features, paper.truth));
  set_rows(state, kRows);
  set_rate(state, "of_gemm", 2.0 * kRows * 2 * 64 * 64, gemm_peak());  // forwards and backwards
}
BENCHMARK(linearized_score)->Unit(benchmark::kMillisecond);

// Scores of the true label, and sets, of 5,000 rows and as many classes as the argument says.
struct LabelRows {
  explicit LabelRows(int64_t classes) {
    torch::manual_seed(1);
    Graph graph;
    graph.inputs = {make_info("x", {kDynamic, classes})};
    graph.outputs = {make_info("y", {kDynamic, classes})};
    graph.nodes = {make_node("Neg", {"x"}, {"y"})};
    head = std::make_shared<const Network>(graph);
    logits = 2.5 * torch::randn({5000, classes});
    labels = torch::randint(classes, {5000, 1}).to(torch::kFloat);
  }
  std::shared_ptr<const Network> head;
  torch::Tensor logits, labels;
};

ScoreOptions label_options(const char* name) {
  ScoreOptions options(name);
  if (auto* raps = options.as<RapsOptions>()) *raps = {.rank_weight = 0.01, .rank_free = 5};
  return options;
}

void label_score(benchmark::State& state, const char* name) {
  const LabelRows rows(state.range(0));
  const auto score = make_score(label_options(name), rows.head);
  for (auto _ : state) benchmark::DoNotOptimize(score->score(rows.logits, rows.labels));
  set_rows(state, 5000);
}
BENCHMARK_CAPTURE(label_score, lac, "lac")->Arg(20)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(label_score, raps, "raps")->Arg(20)->Arg(1000)->Unit(benchmark::kMillisecond);

void label_region(benchmark::State& state, const char* name) {
  const LabelRows rows(state.range(0));
  const auto score = make_score(label_options(name), rows.head);
  for (auto _ : state) benchmark::DoNotOptimize(score->region(rows.logits, 0.9));
  set_rows(state, 5000);
}
BENCHMARK_CAPTURE(label_region, lac, "lac")->Arg(20)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(label_region, raps, "raps")->Arg(20)->Arg(1000)->Unit(benchmark::kMillisecond);

void bands_of_many_radii(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const auto bounds = make_bounds(paper.head, {.outward = false});
  const auto ranges = bounds->around({paper.features, {}, Norm::kInf, {}});
  const torch::Tensor radius = torch::full({kRows}, 0.2);
  for (auto _ : state) benchmark::DoNotOptimize(ranges(radius));
  set_rows(state, kRows);
  set_rate(state, "of_copy", kRows * 64 * sizeof(float), copy_peak());
}
BENCHMARK(bands_of_many_radii)->Unit(benchmark::kMillisecond);

void backbone(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const ScoredNetwork predictor(paper.graph, paper.score, "h2");
  for (auto _ : state) benchmark::DoNotOptimize(predictor.features(paper.x));
  set_rows(state, kRows);
  set_rate(state, "of_gemm", 2.0 * kRows * 2 * 64 * 64, gemm_peak());
}
BENCHMARK(backbone)->Unit(benchmark::kMillisecond);

// A service's case: a row comes, its interval goes.
void predict_one_row(benchmark::State& state) {
  const PaperNetwork& paper = PaperNetwork::get();
  const torch::NoGradGuard no_grad;
  CalibrationArtifact artifact;
  artifact.network = paper.graph;
  artifact.method.cut = "h2";
  artifact.rows.scores =
      make_score(artifact.method.score, paper.head)->score(paper.features, paper.truth);
  const internal::PredictorCore predictor(artifact);
  const torch::Tensor row = paper.x.narrow(0, 0, 1).clone();
  const Level level(0.1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(predictor.region(predictor.describe(row), level));
  }
  set_rows(state, 1);
}
BENCHMARK(predict_one_row)->Unit(benchmark::kMicrosecond);

const std::vector<double>& many_scores() {
  static const std::vector<double> scores = [] {
    Random random(0);
    std::vector<double> made(kScores);
    for (double& score : made) score = random.uniform();
    return made;
  }();
  return scores;
}

// What a quantile is measured by: reading the scores once.
void read_scores(benchmark::State& state) {
  const std::vector<double>& scores = many_scores();
  for (auto _ : state) {
    benchmark::DoNotOptimize(std::accumulate(scores.begin(), scores.end(), 0.0));
  }
  set_rows(state, static_cast<int64_t>(kScores));
  set_rate(state, "of_copy", kScores * sizeof(double), copy_peak());
}
BENCHMARK(read_scores)->Unit(benchmark::kMillisecond);

void quantile_of_scores(benchmark::State& state) {
  const std::vector<double>& scores = many_scores();
  for (auto _ : state) benchmark::DoNotOptimize(conformal_quantile(scores, Level(0.1)));
  set_rows(state, static_cast<int64_t>(kScores));
  set_rate(state, "of_copy", kScores * sizeof(double), copy_peak());
}
BENCHMARK(quantile_of_scores)->Unit(benchmark::kMillisecond);

// Residuals of different sizes, sorted by fcp or, with argument 1, by the standard library.
void sort_of_scores(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  Random random(1);
  std::vector<double> made(count);
  for (double& score : made) score = std::abs(random.normal()) * (0.2 + random.uniform());
  for (auto _ : state) {
    std::vector<double> scores = made;
    state.range(1) == 0 ? sort_scores(scores) : std::sort(scores.begin(), scores.end());
    benchmark::DoNotOptimize(scores.data());
  }
  set_rows(state, state.range(0));
}
BENCHMARK(sort_of_scores)
    ->ArgsProduct({{20'000, 1'000'000}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

// An epoch of one network, as `fcp train` has it on the CPU: of_gemm counts the products forwards
// and backwards.
void train_epoch(benchmark::State& state) {
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({kRows, 64}), y = torch::randn({kRows, 1});
  FitRows rows;
  rows.training.resize(kRows - 256);
  rows.holdout.resize(256);
  std::iota(rows.training.begin(), rows.training.end(), 0);
  std::iota(rows.holdout.begin(), rows.holdout.end(), kRows - 256);
  EnsembleFitOptions options;
  options.epochs = 1;
  StackLoss loss;
  loss.weights = torch::ones({1});
  loss.shares = torch::ones({1, 2});
  int64_t weights = 0;
  for (auto _ : state) {
    const EnsembleFit fit = fit_ensemble(x, y, {rows}, loss, 2, options);
    weights = fit.shape.parameters();
  }
  set_rows(state, kRows);
  set_rate(state, "of_gemm", 6.0 * static_cast<double>(kRows * weights), gemm_peak());
}
BENCHMARK(train_epoch)->Unit(benchmark::kMillisecond);

// Spread and quantiles on 512 features of each row, of which the first says how large errors are.
void fit_feature_heads(benchmark::State& state) {
  torch::manual_seed(7);
  HeadMember member;
  member.features = torch::randn({kRows, 512});
  member.prediction = torch::randn({kRows, 1});
  member.residual = member.features.narrow(1, 0, 1).exp() * torch::randn({kRows, 1});
  for (auto _ : state) benchmark::DoNotOptimize(fit_heads({member}).spread_floor);
  set_rows(state, kRows);
}
BENCHMARK(fit_feature_heads)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace fcp

int main(int argc, char** argv) {
  int threads = 1;
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--threads=")) {
      threads = std::stoi(argument.substr(10));
    } else {
      arguments.push_back(argv[i]);
    }
  }
  fcp::keep_freed_memory();  // as the program does
  at::set_num_threads(threads);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

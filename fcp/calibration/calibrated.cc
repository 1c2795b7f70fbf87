#include "fcp/calibration/calibrated.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"

namespace fcp {
namespace {

constexpr char kScores[] = "fcp.scores";
constexpr char kBaseline[] = "fcp.baseline";
constexpr char kGroups[] = "fcp.groups";
constexpr char kWeights[] = "fcp.weights";
constexpr char kFeatures[] = "fcp.features";
constexpr char kRatio[] = "fcp.ratio";
constexpr char kScale[] = "fcp.scale";
constexpr char kSettings[] = "fcp.calibration";
constexpr char kProvenance[] = "fcp.provenance";
constexpr int kFormat = 2;

using Json = nlohmann::ordered_json;

// Whole numbers alone: converting 1e99 to an int is undefined.
template <typename Integer>
void read_integer(const Json& settings, const char* name, Integer& value) {
  const Json& number = settings.at(name);
  if (!number.is_number_integer()) fail("its '", name, "' is not a whole number");
  number.get_to(value);
}

Json calibration_of(const Calibrated& calibrated) {
  const CalibrationOptions& options = calibrated.calibration;
  return {{"name", options.name},           {"group", options.group},
          {"bandwidth", options.bandwidth}, {"seed", options.seed},
          {"paper", options.paper},         {"group_names", calibrated.rows.group_names}};
}

void read_calibration(const Json& settings, Calibrated& calibrated) {
  CalibrationOptions& options = calibrated.calibration;
  settings.at("name").get_to(options.name);
  settings.at("group").get_to(options.group);
  settings.at("bandwidth").get_to(options.bandwidth);
  read_integer(settings, "seed", options.seed);
  settings.at("paper").get_to(options.paper);
  settings.at("group_names").get_to(calibrated.rows.group_names);
}

Json settings_of(const Calibrated& calibrated) {
  const ScoreOptions& score = calibrated.score;
  return {{"format", kFormat},
          {"score", score.name},
          {"cut", calibrated.cut},
          {"output", score.output},
          {"normalize", score.normalize},
          {"low", score.low},
          {"high", score.high},
          {"asymmetric", score.asymmetric},
          {"norm", norm_name(score.norm)},
          {"bound", bound_name(score.bound.method)},
          {"iterations", score.bound.iterations},
          {"rate", score.bound.rate},
          {"outward", score.bound.outward},
          {"pixels", score.pixels},
          {"floor", score.floor},
          {"slope", score.slope},
          {"steps", score.steps},
          {"step_rate", score.step_rate},
          {"adam", score.adam},
          {"paper", score.paper},
          {"loss_weights", score.loss_weights},
          {"temperature", score.temperature},
          {"double_log", score.double_log},
          {"randomized", score.randomized},
          {"rank_weight", score.rank_weight},
          {"rank_free", score.rank_free},
          {"samples", score.samples},
          {"seed", score.seed},
          {"calibration", calibration_of(calibrated)}};
}

void read_settings(const Json& settings, Calibrated& calibrated) {
  int format = 0;
  read_integer(settings, "format", format);
  if (format != kFormat) {
    fail("its calibration has format ", format, ", this fcp reads format ", kFormat);
  }
  settings.at("cut").get_to(calibrated.cut);
  ScoreOptions& score = calibrated.score;
  settings.at("score").get_to(score.name);
  settings.at("output").get_to(score.output);
  settings.at("normalize").get_to(score.normalize);
  settings.at("low").get_to(score.low);
  settings.at("high").get_to(score.high);
  settings.at("asymmetric").get_to(score.asymmetric);
  score.norm = parse_norm(settings.at("norm").get<std::string>());
  score.bound.method = parse_bound(settings.at("bound").get<std::string>());
  read_integer(settings, "iterations", score.bound.iterations);
  settings.at("rate").get_to(score.bound.rate);
  settings.at("outward").get_to(score.bound.outward);
  score.pixels = settings.value("pixels", 0.0);  // older files have neither
  score.double_log = settings.value("double_log", false);
  settings.at("floor").get_to(score.floor);
  settings.at("slope").get_to(score.slope);
  read_integer(settings, "steps", score.steps);
  settings.at("step_rate").get_to(score.step_rate);
  settings.at("adam").get_to(score.adam);
  settings.at("paper").get_to(score.paper);
  settings.at("loss_weights").get_to(score.loss_weights);
  settings.at("temperature").get_to(score.temperature);
  settings.at("randomized").get_to(score.randomized);
  settings.at("rank_weight").get_to(score.rank_weight);
  read_integer(settings, "rank_free", score.rank_free);
  read_integer(settings, "samples", score.samples);
  read_integer(settings, "seed", score.seed);
  read_calibration(settings.at("calibration"), calibrated);
}

// The initializer of this name, taken out of the network; undefined where there is none. An Error
// where its type or number of axes is another.
torch::Tensor take(Graph& network, const char* name, torch::ScalarType type, int64_t axes) {
  const auto found = network.initializers.find(name);
  if (found == network.initializers.end()) return {};
  const torch::Tensor tensor = found->second.contiguous();
  if (tensor.scalar_type() != type || tensor.dim() != axes) {
    fail("its '", name, "' is not of the type and shape that a calibration has");
  }
  network.initializers.erase(found);
  return tensor;
}

template <typename Number>
std::vector<Number> numbers_of(const torch::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const Number* data = tensor.data_ptr<Number>();
  return {data, data + tensor.numel()};
}

void take_rows_of(Graph& network, CalibrationRows& rows) {
  const torch::Tensor scores = take(network, kScores, torch::kDouble, 2);
  if (!scores.defined()) fail("its calibration has no '", kScores, "'");
  rows.sides = scores.size(1);
  rows.scores = numbers_of<double>(scores);
  if (rows.sides < 1) fail("its scores have no sides");
  if (scores.isnan().any().item<bool>()) fail("one of its scores is not a number");
  rows.groups = numbers_of<int64_t>(take(network, kGroups, torch::kLong, 1));
  rows.weights = numbers_of<double>(take(network, kWeights, torch::kDouble, 1));
  rows.features = take(network, kFeatures, torch::kFloat, 2);
}

// One row each: means, deviations and slopes; the intercept stands last, under 0 and 1.
torch::Tensor ratio_matrix(const DensityRatio& ratio) {
  const auto with_end = [](const torch::Tensor& values, double end) {
    return torch::cat({values, torch::full({1}, end, torch::kDouble)});
  };
  return torch::stack({with_end(ratio.mean, 0), with_end(ratio.deviation, 1), ratio.slope});
}

DensityRatio take_ratio(Graph& network) {
  const torch::Tensor matrix = take(network, kRatio, torch::kDouble, 2);
  if (!matrix.defined()) return {};
  if (matrix.size(0) != 3 || matrix.size(1) < 1) fail("its likelihood ratio is damaged");
  const int64_t columns = matrix.size(1) - 1;
  return {matrix[0].narrow(0, 0, columns), matrix[1].narrow(0, 0, columns), matrix[2]};
}

std::vector<double> take_baseline(Graph& network) {
  const auto values = numbers_of<double>(take(network, kBaseline, torch::kDouble, 1));
  const bool bad =
      std::any_of(values.begin(), values.end(), [](double s) { return std::isnan(s); });
  if (bad || !std::is_sorted(values.begin(), values.end())) {
    fail("the scores of its baseline are not in order");
  }
  return values;
}

}  // namespace

std::vector<double> Calibrated::radius(const Level& level) const {
  if (calibration.name != "split") return {};
  const torch::Tensor radii =
      make_calibration(calibration, rows)->radii({torch::zeros({1, 1}), {}, {}}, level);
  const torch::Tensor plain = radii.contiguous();
  return numbers_of<double>(plain);
}

Graph to_artefact(const Calibrated& calibrated) {
  Graph graph = calibrated.network;
  const CalibrationRows& rows = calibrated.rows;
  graph.initializers[kScores] = torch::tensor(rows.scores, torch::kDouble)
                                    .reshape({static_cast<int64_t>(rows.count()), rows.sides});
  if (!calibrated.baseline.empty()) {
    graph.initializers[kBaseline] = torch::tensor(calibrated.baseline, torch::kDouble);
  }
  if (!rows.groups.empty()) graph.initializers[kGroups] = torch::tensor(rows.groups, torch::kLong);
  if (!rows.weights.empty()) {
    graph.initializers[kWeights] = torch::tensor(rows.weights, torch::kDouble);
  }
  if (rows.features.defined()) graph.initializers[kFeatures] = rows.features;
  if (!calibrated.score.scale.empty()) {
    graph.initializers[kScale] = torch::tensor(calibrated.score.scale, torch::kDouble);
  }
  if (calibrated.ratio.defined()) graph.initializers[kRatio] = ratio_matrix(calibrated.ratio);
  graph.metadata[kSettings] = settings_of(calibrated).dump();
  graph.metadata[kProvenance] = Json(calibrated.provenance).dump();
  return graph;
}

Calibrated from_artefact(Graph artefact, const std::string& name) {
  Calibrated calibrated;
  calibrated.network = std::move(artefact);
  auto& metadata = calibrated.network.metadata;
  if (!metadata.contains(kSettings)) {
    fail(name, ": is a network without calibration; run `fcp calibrate` on it first");
  }
  try {
    read_settings(Json::parse(metadata.at(kSettings)), calibrated);
    take_rows_of(calibrated.network, calibrated.rows);
    calibrated.ratio = take_ratio(calibrated.network);
    calibrated.score.scale =
        numbers_of<double>(take(calibrated.network, kScale, torch::kDouble, 1));
    calibrated.baseline = take_baseline(calibrated.network);
    make_calibration(calibrated.calibration, calibrated.rows);  // complains of what does not fit
    if (!metadata.contains(kProvenance)) fail("its calibration has no '", kProvenance, "'");
    calibrated.provenance =
        Json::parse(metadata.at(kProvenance)).get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail(name, ": its calibration settings are damaged");
  } catch (const Error& error) {
    fail(name, ": ", error.what());
  }
  metadata.erase(kSettings);
  metadata.erase(kProvenance);
  return calibrated;
}

Calibrated read_calibrated(const std::string& path) { return from_artefact(read_onnx(path), path); }

void write_calibrated(const Calibrated& calibrated, const std::string& path) {
  write_onnx(to_artefact(calibrated), path);
}

}  // namespace fcp

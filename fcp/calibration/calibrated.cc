#include "fcp/calibration/calibrated.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/conformal/quantile.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/onnx_writer.h"

namespace fcp {
namespace {

constexpr char kScores[] = "fcp.scores";
constexpr char kResiduals[] = "fcp.residuals";
constexpr char kSettings[] = "fcp.calibration";
constexpr char kProvenance[] = "fcp.provenance";
constexpr int kFormat = 1;

using Json = nlohmann::ordered_json;

Json settings_of(const Calibrated& calibrated) {
  const ScoreOptions& score = calibrated.score;
  return {{"format", kFormat},
          {"score", score.name},
          {"cut", calibrated.cut},
          {"output", score.output},
          {"normalize", score.normalize},
          {"norm", norm_name(score.norm)},
          {"bound", bound_name(score.bound.method)},
          {"iterations", score.bound.iterations},
          {"rate", score.bound.rate},
          {"outward", score.bound.outward},
          {"floor", score.floor},
          {"slope", score.slope},
          {"steps", score.steps},
          {"step_rate", score.step_rate},
          {"adam", score.adam},
          {"paper", score.paper},
          {"loss_weights", score.loss_weights}};
}

void read_settings(const Json& settings, Calibrated& calibrated) {
  const int format = settings.at("format").get<int>();
  if (format != kFormat) {
    fail("its calibration has format ", format, ", this fcp reads format ", kFormat);
  }
  settings.at("cut").get_to(calibrated.cut);
  ScoreOptions& score = calibrated.score;
  settings.at("score").get_to(score.name);
  settings.at("output").get_to(score.output);
  settings.at("normalize").get_to(score.normalize);
  score.norm = parse_norm(settings.at("norm").get<std::string>());
  score.bound.method = parse_bound(settings.at("bound").get<std::string>());
  settings.at("iterations").get_to(score.bound.iterations);
  settings.at("rate").get_to(score.bound.rate);
  settings.at("outward").get_to(score.bound.outward);
  settings.at("floor").get_to(score.floor);
  settings.at("slope").get_to(score.slope);
  settings.at("steps").get_to(score.steps);
  settings.at("step_rate").get_to(score.step_rate);
  settings.at("adam").get_to(score.adam);
  settings.at("paper").get_to(score.paper);
  settings.at("loss_weights").get_to(score.loss_weights);
}

std::vector<double> take_scores(Graph& network, const char* name) {
  const auto found = network.initializers.find(name);
  if (found == network.initializers.end()) fail("its calibration has no '", name, "'");
  const torch::Tensor scores = found->second;
  if (scores.scalar_type() != torch::kDouble || scores.dim() != 1) {
    fail("its scores must be doubles in one dimension");
  }
  const double* data = scores.data_ptr<double>();
  std::vector<double> values(data, data + scores.numel());
  const bool bad =
      std::any_of(values.begin(), values.end(), [](double s) { return std::isnan(s); });
  if (bad || !std::is_sorted(values.begin(), values.end())) fail("its scores are not in order");
  network.initializers.erase(found);
  return values;
}

}  // namespace

double Calibrated::radius(const Level& level) const {
  const double radius = conformal_quantile_sorted(scores, level);
  // The paper's code takes the largest score where the rank goes beyond it.
  return score.paper && !scores.empty() ? std::min(radius, scores.back()) : radius;
}

Graph to_artefact(const Calibrated& calibrated) {
  Graph graph = calibrated.network;
  graph.initializers[kScores] = torch::tensor(calibrated.scores, torch::kDouble);
  graph.initializers[kResiduals] = torch::tensor(calibrated.residuals, torch::kDouble);
  graph.metadata[kSettings] = settings_of(calibrated).dump();
  graph.metadata[kProvenance] = Json(calibrated.provenance).dump();
  return graph;
}

Calibrated read_calibrated(const std::string& path) {
  Calibrated calibrated;
  calibrated.network = read_onnx(path);
  auto& metadata = calibrated.network.metadata;
  if (!metadata.contains(kSettings)) {
    fail(path, ": is a network without calibration; run `fcp calibrate` on it first");
  }
  try {
    read_settings(Json::parse(metadata.at(kSettings)), calibrated);
    calibrated.scores = take_scores(calibrated.network, kScores);
    calibrated.residuals = take_scores(calibrated.network, kResiduals);
    const auto provenance = metadata.find(kProvenance);
    if (provenance != metadata.end()) {
      calibrated.provenance =
          Json::parse(provenance->second).get<std::map<std::string, std::string>>();
    }
  } catch (const nlohmann::json::exception&) {
    fail(path, ": its calibration settings are damaged");
  } catch (const Error& error) {
    fail(path, ": ", error.what());
  }
  metadata.erase(kSettings);
  metadata.erase(kProvenance);
  return calibrated;
}

void write_calibrated(const Calibrated& calibrated, const std::string& path) {
  write_onnx(to_artefact(calibrated), path);
}

}  // namespace fcp

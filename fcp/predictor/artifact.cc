#include "fcp/predictor/artifact.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/methods/calibrations/kept_levels.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/artifact_settings.h"

namespace fcp {
namespace {

constexpr char kScores[] = "fcp.scores";
constexpr char kBaseline[] = "fcp.baseline";
constexpr char kGroups[] = "fcp.groups";
constexpr char kWeights[] = "fcp.weights";
constexpr char kFeatures[] = "fcp.features";
constexpr char kRatio[] = "fcp.ratio";
constexpr char kScale[] = "fcp.scale";
constexpr char kChances[] = "fcp.probabilities";
constexpr char kSettings[] = "fcp.calibration";
constexpr char kProvenance[] = "fcp.provenance";
constexpr char kRounding[] = "fcp.rounding";
constexpr char kTried[] = "fcp.candidates";
constexpr char kOutputs[] = "fcp.outputs";
constexpr double kInfiniteRadius = std::numeric_limits<double>::infinity();

using Json = nlohmann::ordered_json;

// The initializer of this name, taken out of the network; undefined where there is none. An Error
// where its type or number of axes is another.
torch::Tensor take(Graph& network, const char* name, torch::ScalarType type, int64_t axes) {
  const auto found = network.initializers.find(name);
  if (found == network.initializers.end()) return {};
  const torch::Tensor tensor = found->second;
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

void take_rows_of(Graph& network, CalibrationScores& rows) {
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

void take_targets(const ScoreOptions& score, CalibrationScores& rows) {
  rows.targets = std::max<int64_t>(1, static_cast<int64_t>(score.targets));
  if (rows.sides % rows.targets == 0) return;
  fail("its scores have ", rows.sides, " sides for ", rows.targets, " targets");
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

std::vector<double> take_baseline(Graph& network, const CalibrationScores& rows) {
  const auto values = numbers_of<double>(take(network, kBaseline, torch::kDouble, 1));
  const bool bad =
      std::any_of(values.begin(), values.end(), [](double s) { return std::isnan(s); });
  if (bad || !std::is_sorted(values.begin(), values.end())) {
    fail("the scores of its baseline are not in order");
  }
  const size_t needed = SideRanks{.rows = rows.total}.ranks(rows.levels).size();
  if (!rows.levels.empty() && !values.empty() && values.size() != needed) {
    fail("its baseline has ", values.size(), " scores, its levels need ", needed);
  }
  return values;
}

// A row for each step: which of the calibrated probabilities it is of, from which score on, p0, p1.
torch::Tensor chances_matrix(const std::vector<VennAbers>& chances) {
  std::vector<double> numbers;
  for (size_t k = 0; k < chances.size(); ++k) {
    for (const VennAbers::Step& step : chances[k].steps()) {
      numbers.insert(numbers.end(), {static_cast<double>(k), step.from, step.p0, step.p1});
    }
  }
  return torch::tensor(numbers, torch::kDouble).reshape({-1, 4});
}

std::vector<VennAbers> take_chances(Graph& network) {
  const torch::Tensor matrix = take(network, kChances, torch::kDouble, 2);
  if (!matrix.defined()) return {};
  if (matrix.size(0) < 1 || matrix.size(1) != 4) fail("its probabilities are damaged");
  std::vector<std::vector<VennAbers::Step>> steps;
  const double* row = matrix.data_ptr<double>();
  for (int64_t i = 0; i < matrix.size(0); ++i, row += 4) {
    if (row[0] == static_cast<double>(steps.size())) steps.emplace_back();
    if (row[0] != static_cast<double>(steps.size()) - 1) fail("its probabilities are not in order");
    steps.back().push_back({row[1], row[2], row[3]});
  }
  std::vector<VennAbers> chances;
  for (std::vector<VennAbers::Step>& one : steps) chances.emplace_back(std::move(one));
  return chances;
}

// How far each number of a feature moves, or the unit of each output: null where the score has
// neither.
template <typename Options>
auto scale_of(Options& score) {
  auto* scale = score.find(field::scale);
  return scale != nullptr ? scale : score.find(field::units);
}

size_t parse_outputs(const std::string& text) {
  size_t outputs = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), outputs);
  if (error != std::errc() || end != text.data() + text.size() || outputs == 0) {
    fail("its number of outputs is '", text, "', expected a whole number of at least 1");
  }
  return outputs;
}

// Whether each side's scores ascend, as every artifact of split calibration has them.
bool sides_ascend(const CalibrationScores& rows) {
  const auto sides = static_cast<size_t>(rows.sides);
  for (size_t i = sides; i < rows.scores.size(); ++i) {
    if (!(rows.scores[i - sides] <= rows.scores[i])) return false;  // nor do they with a NaN
  }
  return true;
}

// A tensor on the memory of the list, which must outlive it.
template <typename Number>
torch::Tensor tensor_on(const std::vector<Number>& numbers, int64_t columns = 0) {
  const auto count = static_cast<int64_t>(numbers.size());
  const auto type = torch::CppTypeToScalarType<Number>::value;
  const torch::Tensor flat =
      numbers.empty() ? torch::empty({0}, type)
                      : torch::from_blob(const_cast<Number*>(numbers.data()), {count}, type);
  return columns == 0 ? flat : flat.reshape({count / columns, columns});
}

// The artifact, whose lists are those of `calibrated` itself: scores may be many.
Graph graph_with_calibration(const CalibrationArtifact& artifact) {
  Graph graph = unpack_inputs(artifact.network);
  const CalibrationScores& rows = artifact.rows;
  auto& tensors = graph.initializers;
  tensors[kScores] = tensor_on(rows.scores, rows.sides);
  if (!artifact.baseline.empty()) tensors[kBaseline] = tensor_on(artifact.baseline);
  if (!rows.groups.empty()) tensors[kGroups] = tensor_on(rows.groups);
  if (!rows.weights.empty()) tensors[kWeights] = tensor_on(rows.weights);
  if (rows.features.defined()) tensors[kFeatures] = rows.features;
  const std::vector<double>* scale = scale_of(artifact.method.score);
  if (scale != nullptr && !scale->empty()) tensors[kScale] = tensor_on(*scale);
  if (artifact.ratio.defined()) tensors[kRatio] = ratio_matrix(artifact.ratio);
  if (!artifact.chances.empty()) tensors[kChances] = chances_matrix(artifact.chances);
  graph.metadata[kSettings] = settings_text(artifact);
  graph.metadata[kProvenance] = Json(artifact.provenance).dump();
  if (artifact.tried) graph.metadata[kTried] = scores_json(*artifact.tried);
  if (artifact.outputs > 0) graph.metadata[kOutputs] = std::to_string(artifact.outputs);
  if (artifact.rounding.measured()) graph.metadata[kRounding] = rounding_text(artifact.rounding);
  return graph;
}

}  // namespace

std::vector<double> CalibrationArtifact::radius(const Level& level) const {
  if (!method.calibration.traits().one_radius) return {};
  if (sides_ascend(rows)) {
    const auto place = radius_place(
        {rows.count(), rows.sides, method.calibration.paper, rows.targets}, rows.levels, level);
    if (!place) return std::vector<double>(static_cast<size_t>(rows.sides), kInfiniteRadius);
    const auto first = rows.scores.begin() + static_cast<std::ptrdiff_t>(*place) * rows.sides;
    return {first, first + rows.sides};
  }
  const torch::Tensor radii =
      make_calibration(method.calibration, rows)->radii({torch::zeros({1, 1}), {}, {}}, level);
  const torch::Tensor plain = radii.contiguous();
  return numbers_of<double>(plain);
}

std::map<std::string, std::string> CalibrationArtifact::facts() const {
  std::map<std::string, std::string> all = provenance;
  if (!tried) return all;
  all["candidates"] = scores_text(*tried);
  if (tried->by == ChosenBy::kIntervalScore) all["objective"] = kByIntervalScore;
  if (tried->by == ChosenBy::kVolume) all["objective"] = kJointVolume;
  return all;
}

Graph artifact_graph(const CalibrationArtifact& artifact) {
  Graph graph = graph_with_calibration(artifact);
  for (const char* name : {kScores, kBaseline, kGroups, kWeights, kScale}) {
    const auto found = graph.initializers.find(name);
    if (found != graph.initializers.end()) found->second = found->second.tensor().clone();
  }
  return graph;
}

CalibrationArtifact artifact_from_graph(Graph graph, const std::string& name) {
  CalibrationArtifact artifact;
  artifact.network = std::move(graph);
  auto& metadata = artifact.network.metadata;
  if (!metadata.contains(kSettings)) {
    fail(name, ": is a network without calibration; run `fcp calibrate` on it first");
  }
  try {
    read_settings(metadata.at(kSettings), artifact);
    if (artifact.method.score.traits().made_by_fit) sort_cross_rows(artifact.network);
    take_rows_of(artifact.network, artifact.rows);
    take_targets(artifact.method.score, artifact.rows);
    artifact.ratio = take_ratio(artifact.network);
    const auto scales = numbers_of<double>(take(artifact.network, kScale, torch::kDouble, 1));
    if (auto* scale = scale_of(artifact.method.score)) *scale = scales;
    artifact.chances = take_chances(artifact.network);
    artifact.baseline = take_baseline(artifact.network, artifact.rows);
    make_calibration(artifact.method.calibration, artifact.rows);  // complains of what does not fit
    if (const auto layout = layout_of(artifact.network)) {
      artifact.network = pack_inputs(artifact.network, *layout);
    }
    if (!metadata.contains(kProvenance)) fail("its calibration has no '", kProvenance, "'");
    artifact.provenance =
        Json::parse(metadata.at(kProvenance)).get<std::map<std::string, std::string>>();
    if (metadata.contains(kTried)) artifact.tried = read_scores_json(metadata.at(kTried));
    if (metadata.contains(kRounding)) artifact.rounding = read_rounding(metadata.at(kRounding));
    if (metadata.contains(kOutputs)) artifact.outputs = parse_outputs(metadata.at(kOutputs));
  } catch (const nlohmann::json::exception&) {
    fail(name, ": its calibration settings are damaged");
  } catch (const Error& error) {
    fail(name, ": ", error.what());
  }
  metadata.erase(kSettings);
  metadata.erase(kProvenance);
  metadata.erase(kRounding);
  metadata.erase(kTried);
  metadata.erase(kOutputs);
  return artifact;
}

bool is_calibrated(const Graph& network) { return network.metadata.contains(kSettings); }

CalibrationArtifact read_artifact(const std::string& path) {
  return artifact_from_graph(read_onnx(path), path);
}

void write_artifact(const CalibrationArtifact& artifact, const std::string& path) {
  write_onnx(graph_with_calibration(artifact), path);
}

}  // namespace fcp

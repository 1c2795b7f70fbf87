#include "fcp/export/export.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/export/intervals.h"
#include "fcp/export/labels.h"
#include "fcp/methods/scores/cross.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/nn/graph/half.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/ops/types.h"
#include "fcp/nn/runtime/element_types.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/scored_network.h"

namespace fcp {
namespace {

constexpr char kExported[] = "fcp.export";

void check_calibration(const CalibrationArtifact& artifact) {
  const CalibrationOptions& options = artifact.method.calibration;
  if (!options.traits().by_group) {
    if (options.traits().one_radius || options.traits().made_by_fit) return;
    fail(options.name(),
         " calibration gives each row a radius of its own from all calibration rows, ",
         "which is not a fixed part of a graph; export takes split");
  }
  if (options.by_column()) {
    fail("the group of a row is told by '", options.value(field::group),
         "', which is not an input of the network; export takes split");
  }
  if (!artifact.method.score.traits().labels) {
    fail("grouped calibration by label is exported for scores of labels, found ",
         artifact.method.score.name());
  }
}

// What keeps a score from being a fixed graph, by its options.
template <typename Options>
void check_options_of(const Options&, const ScoreOptions&) {}

void check_options_of(const LacOptions&, const ScoreOptions& score) {
  if (score.pixels == 0) return;
  fail("sets of labels for every pixel are not exported; calibrate with residual or nested");
}

void check_options_of(const CrossLabelsOptions&, const ScoreOptions&) {
  fail("cross calibration of labels is not exported, where equal numbers decide a rank; fit with ",
       "calibration split to export");
}

void check_options_of(const DensityOptions& options, const ScoreOptions&) {
  if (!options.level_set) return;
  fail("unions of intervals have no fixed number of ends, which is not a fixed graph; calibrate ",
       "density without union to export");
}

void check_options_of(const NestedOptions&, const ScoreOptions& score) {
  if (score.rectifier.empty() || score.side == BoundSide::kBoth) return;
  fail("one end of rectified nested is not exported; calibrate with spread or quantiles, or ",
       "without rectifying");
}

template <typename Options>
requires requires(const Options& options) { options.randomized; }
void check_options_of(const Options& options, const ScoreOptions&) {
  if (!options.randomized) return;
  fail(options.kName, " draws a random number from the bytes of each row, for which ONNX has no ",
       "operator; calibrate with --not-randomized to export");
}

void check_score(const ScoreOptions& score) {
  const bool cqr_of_features = score.traits().uses_features && score.find(field::low) != nullptr;
  if (score.searches()) {
    fail(score.name(), cqr_of_features ? " by the paper" : "",
         " searches features by gradient descent, which is not a fixed graph; calibrate with ",
         score.traits().labels ? "feature_margin" : "nested or linearized", " to export");
  }
  if (!score.rectifier.empty() && (cqr_of_features || score.traits().labels)) {
    fail("rectified ", score.name(),
         " is not exported; residual, linearized, nested, cqr, spread, quantiles and density are");
  }
  std::visit([&](const auto& options) { check_options_of(options, score); }, score.own);
  const BoundOptions* bound = score.find(field::bound);
  if (bound != nullptr && !score.traits().labels && bound->method != BoundMethod::kIbp) {
    fail("bounds by ", bound_name(bound->method), " walk backwards from every output, which ",
         "is not written as ONNX nodes; calibrate with the bound ibp to export");
  }
}

// Without the outputs that the region alone reads, as wide as there are calibration rows.
Graph without_cross_outputs(Graph network) {
  std::erase_if(network.outputs, [](const TensorInfo& output) {
    return output.name == kCrossLowOutput || output.name == kCrossHighOutput;
  });
  return network;
}

// An exported network is given away: what tells which rows it was trained or calibrated on
// (fcp/data/row_digest.h) stays behind.
void drop_row_metadata(Graph& graph) {
  std::erase_if(graph.metadata, [](const auto& entry) {
    return entry.first.starts_with("fcp.training.") || entry.first.starts_with("fcp.calibration");
  });
}

bool is_half(const TensorInfo& info) {
  return info.type == ElementType::kHalf || info.type == ElementType::kBFloat16;
}

// A network in 16 bits computes in 32 here, as it does in fcp: its inputs and outputs keep their
// names and types, and a Cast stands between.
Graph with_half_ends(Graph graph, const Graph& original) {
  const auto rename = [&](const std::string& from, const std::string& to) {
    for (Node& node : graph.nodes) {
      for (auto* names : {&node.inputs, &node.outputs}) {
        std::replace(names->begin(), names->end(), from, to);
      }
    }
  };
  const auto cast = [](const std::string& from, const std::string& to, ElementType type) {
    Node node;
    node.op = "Cast";
    node.name = to;
    node.inputs = {from};
    node.outputs = {to};
    node.attributes["to"] = static_cast<int64_t>(type);
    return node;
  };
  for (const TensorInfo& input : original.inputs) {
    if (!is_half(input)) continue;
    const std::string inside = input.name + "/float32";
    rename(input.name, inside);
    graph.nodes.insert(graph.nodes.begin(), cast(input.name, inside, ElementType::kFloat));
    for (TensorInfo& own : graph.inputs) {
      if (own.name == input.name) own.type = input.type;
    }
  }
  for (const TensorInfo& output : original.outputs) {
    if (!is_half(output)) continue;
    const std::string inside = output.name + "/float32";
    rename(output.name, inside);
    graph.nodes.push_back(cast(inside, output.name, output.type));
    for (TensorInfo& own : graph.outputs) {
      if (own.name == output.name) own.type = output.type;
    }
  }
  return graph;
}

// A row of zeros through the backbone, for the shape of the feature.
torch::Tensor example_feature(const Graph& network, const ScoredNetwork& predictor) {
  const TensorInfo& input = network.inputs[0];
  std::vector<int64_t> shape = input.shape;
  if (!input.known_rank || shape.empty() ||
      std::find(shape.begin() + 1, shape.end(), kDynamic) != shape.end()) {
    fail("input '", input.name, "' does not say its shape; export of this score needs all of it ",
         "but the number of rows");
  }
  if (shape[0] == kDynamic) shape[0] = 1;
  return predictor.features(torch::zeros(shape, scalar_type(input.type)));
}

TensorInfo info_like(TensorInfo info, const std::string& name) {
  info.name = name;
  return info;
}

TensorInfo class_info(const std::string& name, const TensorInfo& input, int64_t classes,
                      ElementType type) {
  TensorInfo info;
  info.name = name;
  info.type = type;
  const bool rows_known = input.known_rank && !input.shape.empty();
  info.shape = {rows_known ? input.shape[0] : kDynamic, classes};
  info.dimension_names = {
      rows_known && !input.dimension_names.empty() ? input.dimension_names[0] : "", ""};
  return info;
}

// The outputs that `predict` answers with.
std::vector<std::string> prediction_names(const CalibrationArtifact& artifact,
                                          const Network& head) {
  const ScoreOptions& score = artifact.method.score;
  if (!score.traits().labels) return center_names(artifact, head);
  return {head.outputs()[output_index(head, score.output)].name};
}

// The numbers of a row that may be NaN, by their places; "all", where each may.
nlohmann::ordered_json missing_numbers(const Graph& network) {
  const MissingNumbers missing(network);
  const std::vector<int64_t>& shape = network.inputs[0].shape;
  nlohmann::ordered_json places = nlohmann::ordered_json::array();
  const bool open = shape.empty() || std::count(shape.begin() + 1, shape.end(), kDynamic) > 0;
  if (!missing.any() || open) return places;
  const std::vector<bool> columns = missing.columns({shape.begin() + 1, shape.end()});
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i]) places.push_back(i);
  }
  return !columns.empty() && places.size() == columns.size() ? "all" : places;
}

std::string export_settings(const CalibrationArtifact& artifact, const ExportOptions& options,
                            const Network& head) {
  nlohmann::ordered_json alpha = nlohmann::ordered_json::array();
  nlohmann::ordered_json regions = nlohmann::ordered_json::array();
  for (const Level& level : options.levels) {
    alpha.push_back(level.text());
    regions.push_back(export_names(artifact, options, level));
  }
  const nlohmann::ordered_json json = {{"format", 1},
                                       {"score", artifact.method.score.name()},
                                       {"cut", artifact.method.cut},
                                       {"calibration", artifact.method.calibration.name()},
                                       {"rows", artifact.rows.count()},
                                       {"alpha", alpha},
                                       {"prediction", prediction_names(artifact, head)},
                                       {"regions", regions},
                                       {"probabilities", chance_names(artifact, options)},
                                       {"missing", missing_numbers(artifact.network)},
                                       {"provenance", artifact.facts()}};
  return json.dump();
}

void check_levels(const std::vector<Level>& levels) {
  if (levels.empty()) fail("export needs at least one level");
  for (size_t i = 0; i < levels.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (levels[i] == levels[j]) fail("the level ", levels[i].text(), " is given twice");
    }
  }
}

}  // namespace

std::vector<std::string> export_names(const CalibrationArtifact& artifact,
                                      const ExportOptions& options, const Level& level) {
  const std::string end = options.levels.size() > 1 ? "_" + level.text() : "";
  const std::string& start = options.prefix;
  if (artifact.method.score.traits().labels) return {start + "in_set" + end};
  return {start + "lower" + end, start + "upper" + end};
}

std::vector<std::string> chance_names(const CalibrationArtifact& artifact,
                                      const ExportOptions& options) {
  if (artifact.chances.empty()) return {};
  return {options.prefix + "probability", options.prefix + "p0", options.prefix + "p1"};
}

Graph export_artifact(const CalibrationArtifact& given, const ExportOptions& options) {
  CalibrationArtifact artifact = given;
  widen_half(artifact.network);
  check_levels(options.levels);
  check_calibration(artifact);
  check_score(artifact.method.score);
  const ScoredNetwork predictor(artifact.network, artifact.method.score, artifact.method.cut);
  ExportHead head{predictor.shared_head(), {}};
  if (artifact.method.score.traits().uses_features) {
    head.feature = example_feature(artifact.network, predictor);
  }
  GraphBuilder builder(without_cross_outputs(artifact.network));
  const auto names = [&](size_t i) { return export_names(artifact, options, options.levels[i]); };
  if (artifact.method.score.traits().labels) {
    const LabelSets sets = write_label_sets(builder, artifact, head, options.levels);
    for (size_t i = 0; i < options.levels.size(); ++i) {
      const TensorInfo& input = artifact.network.inputs[0];
      builder.output(sets.members[i],
                     class_info(names(i)[0], input, sets.classes, ElementType::kBool));
    }
    const std::vector<std::string> chances = chance_names(artifact, options);
    for (size_t i = 0; i < sets.chances.size(); ++i) {
      builder.output(sets.chances[i], class_info(chances[i], artifact.network.inputs[0],
                                                 sets.classes, ElementType::kFloat));
    }
  } else {
    const std::vector<Ends> ends = write_intervals(builder, artifact, head, options.levels);
    const TensorInfo info = interval_output(artifact, *head.network);
    for (size_t i = 0; i < options.levels.size(); ++i) {
      builder.output(ends[i].lower, info_like(info, names(i)[0]));
      builder.output(ends[i].upper, info_like(info, names(i)[1]));
    }
  }
  Graph graph = std::move(builder).finish();
  drop_row_metadata(graph);
  graph.metadata[kExported] = export_settings(artifact, options, *head.network);
  return with_half_ends(unpack_inputs(graph), unpack_inputs(given.network));
}

}  // namespace fcp

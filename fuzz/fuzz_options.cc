// Lines `name=text` as options of a request: parsed by the option table, checked as a whole, kept
// in an artifact that also has heads on its features, read again and made into a predictor. What
// was accepted must be readable, with the same values.
#include <cstdlib>
#include <string>
#include <string_view>

#include <torch/types.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/methods/options.h"
#include "fcp/methods/scores/outputs.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/predictor_core.h"

namespace {

// x → h → y with the outputs that heads on features have.
fcp::Graph network_with_heads() {
  fcp::Graph graph;
  graph.opset = 17;
  graph.initializers["w"] = torch::ones({2, 2});
  graph.initializers["v"] = torch::ones({2, 1});
  graph.initializers["q"] = torch::ones({2, 3});
  graph.nodes.push_back({"", "MatMul", "", {"x", "w"}, {"h"}, {}});
  graph.nodes.push_back({"", "MatMul", "", {"h", "v"}, {"y"}, {}});
  graph.nodes.push_back({"", "MatMul", "", {"h", "v"}, {fcp::kSpreadOutput}, {}});
  graph.nodes.push_back({"", "MatMul", "", {"h", "q"}, {fcp::kQuantilesOutput}, {}});
  graph.inputs.push_back({"x", torch::kFloat, true, {fcp::kDynamic, 2}, {"n", ""}});
  for (const auto& [name, width] : {std::pair<const char*, int64_t>{"y", 1},
                                    {fcp::kSpreadOutput, 1},
                                    {fcp::kQuantilesOutput, 3}}) {
    graph.outputs.push_back({name, torch::kFloat, true, {fcp::kDynamic, width}, {"n", ""}});
  }
  return graph;
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

void put_lines(std::string_view text, fcp::MethodRequest& request) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const fcp::Option& option = fcp::find_option(std::string(line.substr(0, equals)));
    fcp::set_option(request, option,
                    fcp::parse_option(option, std::string(line.substr(equals + 1))));
  }
}

// Small enough to be run: what takes long is not what is looked for.
bool is_cheap(const fcp::ScoreOptions& score) {
  const fcp::BoundOptions* bound = score.find(fcp::field::bound);
  return score.value(fcp::field::steps) <= 5 && score.value(fcp::field::samples) <= 100 &&
         (bound == nullptr || bound->iterations <= 5);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  torch::set_num_threads(1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fcp::MethodRequest request;
  fcp::CalibrationArtifact artifact;
  artifact.network = network_with_heads();
  try {
    put_lines({reinterpret_cast<const char*>(data), size}, request);
    fcp::check_options(request);
  } catch (const fcp::Error&) {
    return 0;
  }
  if (request.score == fcp::kAutoScore) return 0;  // chosen by looking at rows
  const fcp::Method method = fcp::resolve(request);
  artifact.method = method;
  if (method.score.traits().uses_features) artifact.method.cut = "h";
  artifact.rows.scores = {0.5, 1, 2, 3};
  fcp::CalibrationArtifact again;
  try {
    again = fcp::artifact_from_graph(fcp::artifact_graph(artifact), "artifact");
  } catch (const fcp::Error&) {
    return 0;  // of a calibration that wants more of its rows
  }
  if (again.method != artifact.method) abort();
  if (!is_cheap(again.method.score)) return 0;
  try {
    const fcp::internal::PredictorCore predictor(again);
    const torch::NoGradGuard no_gradients;
    predictor.region(predictor.describe(torch::ones({2, 2})), fcp::Level(0.5));
  } catch (const fcp::Error&) {
  }
  return 0;
}

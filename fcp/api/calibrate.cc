// The public fcp/calibrate.h: options become the settings of calibrate/, rows in memory a source.
#include "fcp/calibrate/calibrate.h"

#include <filesystem>
#include <map>
#include <utility>

#include "fcp/api/method_options.h"
#include "fcp/base/error.h"
#include "fcp/calibrate.h"
#include "fcp/calibrate/tensor_rows.h"
#include "fcp/nn/graph/batch_axis.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/runtime/single_thread.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/network_inputs.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {
namespace {

MethodRequest requested_method(const CalibrateOptions& options) {
  std::map<std::string, std::string> texts = options.more;
  texts["score"] = options.score;
  texts["calibration"] = options.calibration;
  if (!options.cut.empty()) texts["cut"] = options.cut;
  if (!options.group.empty()) texts["group"] = options.group;
  return internal::method_of(texts, options.seed);
}

Predictor calibrated_on(const Graph& network, RowSource& source, CalibrateSettings asked,
                        const CalibrateOptions& options) {
  const ThreadLimit limit(options.threads);
  const Context context{.device = device_named(options.device), .seed = options.seed};
  asked.method = requested_method(options);
  asked.level = options.level;
  asked.levels = options.keep_levels;
  CalibrateResult result = calibrate(network, source, asked, context);
  return internal::make_predictor(std::move(result.artifact), context.device);
}

CalibrationOptions calibration_of(const CalibrateOptions& options) {
  CalibrationOptions calibration(options.calibration);
  if (std::string* group = calibration.find(field::group)) *group = options.group;
  return calibration;
}

// The groups by number, in the order in which their names come first.
RowFacts facts_of(const RowInfo& info) {
  RowFacts facts;
  facts.weights = info.weights;
  std::map<std::string, int64_t> ids;
  for (const std::string& name : info.groups) {
    const auto [entry, fresh] = ids.emplace(name, static_cast<int64_t>(ids.size()));
    if (fresh) facts.groups.names.push_back(name);
    facts.groups.ids.push_back(entry->second);
  }
  return facts;
}

std::string name_of_file(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

template <typename Values>
Predictor calibrated_in_memory(const std::string& model, const Values& x, std::span<const float> y,
                               const CalibrateOptions& options, const RowInfo& info) {
  Graph network = with_rows_first(read_onnx(model));
  pack_closed_inputs(network);
  const internal::BatchData batch = internal::SchemaData(network).encode(x, RowInfo());
  internal::TensorRows source(batch.x, internal::answers_over(y, batch.x.size(0)));
  const CalibrationOptions calibration = calibration_of(options);
  internal::check_info(info, batch.rows(), calibration.by_column(), calibration.traits().by_weight);
  CalibrateSettings asked;
  asked.data_name = "x";
  asked.provenance = {{"network", name_of_file(model)}};
  asked.facts = facts_of(info);
  CalibrateOptions named = options;
  if (!info.groups.empty() && named.group.empty()) named.group = "group";
  return calibrated_on(network, source, std::move(asked), named);
}

}  // namespace

Predictor calibrate(const std::string& model, const std::string& data, const std::string& target,
                    const CalibrateOptions& options) {
  Graph network = read_onnx(model);
  const DataOptions rows{.data = data, .target = target, .needs_target = true};
  pack_for_rows(rows, network);
  const auto source = open_data(rows, &network);
  remember_images(rows, *source, network);
  CalibrateSettings asked;
  asked.data_name = data;
  asked.provenance = {{"network", name_of_file(model)},
                      {"calibration data", data_file_names(rows)}};
  asked.facts =
      read_facts(rows, {calibration_of(options).by_column() ? options.group : "", options.weights});
  return calibrated_on(network, *source, std::move(asked), options);
}

Predictor calibrate(const std::string& model, std::span<const float> x, std::span<const float> y,
                    const CalibrateOptions& options, const RowInfo& info) {
  return calibrated_in_memory(model, x, y, options, info);
}

Predictor calibrate(const std::string& model, std::span<const NamedValues> x,
                    std::span<const float> y, const CalibrateOptions& options,
                    const RowInfo& info) {
  return calibrated_in_memory(model, x, y, options, info);
}

}  // namespace fcp

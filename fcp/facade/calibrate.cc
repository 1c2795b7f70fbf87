// Calibration from files and from memory; see fcp/fcp.h.
#include "fcp/pipeline/calibrate.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/calibration/options.h"
#include "fcp/facade/state.h"
#include "fcp/network/batch_axis.h"
#include "fcp/network/onnx_reader.h"
#include "fcp/network/single_thread.h"
#include "fcp/pipeline/context.h"
#include "fcp/pipeline/input_numbers.h"
#include "fcp/pipeline/network_inputs.h"
#include "fcp/pipeline/open_data.h"

namespace fcp {
namespace {

// Rows in memory.
class SpanRows : public RowSource {
 public:
  SpanRows(std::span<const float> x, std::span<const float> y, std::vector<int64_t> row_shape)
      : x_(x), y_(y), row_shape_(std::move(row_shape)) {
    width_ = element_count(row_shape_);
    if (width_ == 0 || x.empty() || x.size() % width_ != 0) {
      fail("x: found ", x.size(), " numbers, expected rows of ", width_);
    }
    rows_ = x.size() / width_;
    if (y.size() % rows_ != 0) fail("y: found ", y.size(), " numbers for ", rows_, " rows of x");
    targets_ = y.size() / rows_;
  }

  bool next(size_t count, Rows& out) override {
    const size_t rows = std::min(count, rows_ - next_);
    if (rows == 0) return false;
    out.first_row = next_;
    out.x = part(x_, width_, rows, row_shape_);
    out.y = part(y_, targets_, rows, {static_cast<int64_t>(targets_)});
    next_ += rows;
    return true;
  }

  void rewind() override { next_ = 0; }
  std::optional<size_t> size() const override { return rows_; }
  const std::vector<std::string>& column_names() const override { return none_; }
  const std::vector<std::string>& target_names() const override { return none_; }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override { return targets_; }

 private:
  Array part(std::span<const float> values, size_t width, size_t rows,
             const std::vector<int64_t>& shape) const {
    Array array;
    array.shape = {static_cast<int64_t>(rows)};
    array.shape.insert(array.shape.end(), shape.begin(), shape.end());
    const auto some = values.subspan(next_ * width, rows * width);
    array.values.assign(some.begin(), some.end());
    return array;
  }

  std::span<const float> x_, y_;
  std::vector<int64_t> row_shape_;
  std::vector<std::string> none_;
  size_t width_ = 0, rows_ = 0, targets_ = 0, next_ = 0;
};

[[noreturn]] void fail_of_nan(const char* name, int64_t row, int64_t column) {
  fail(name, ": row ", row, " (from 0) has NaN in column ", column, ", expected a number");
}

MethodRequest method_of(const Settings& settings) {
  MethodRequest request;
  const auto put = [&](const std::string& name, const std::string& text) {
    const Option& option = find_option(name);
    set_option(request, option, parse_option(option, text));
  };
  put("score", settings.score);
  put("calibration", settings.calibration);
  if (!settings.cut.empty()) put("cut", settings.cut);
  if (!settings.group.empty()) put("group", settings.group);
  for (const auto& [name, text] : settings.more) put(name, text);
  request.score.seed = request.calibration.seed = settings.seed;
  check_options(request);
  return request;
}

ConformalPredictor calibrated_on(const Graph& network, RowSource& source, CalibrateSettings asked,
                                 const Settings& settings) {
  const ThreadLimit limit(settings.threads);
  const Context context{.device = device_named(settings.device), .seed = settings.seed};
  asked.method = method_of(settings);
  asked.level = settings.level;
  CalibrateResult result = calibrate(network, source, asked, context);
  return ConformalPredictor(std::make_shared<const ConformalPredictor::State>(
      std::move(result.artifact), context.device));
}

bool is_by_column(const Settings& settings) {
  return settings.calibration == "grouped" && settings.group != kByPrediction &&
         settings.group != kByLabel;
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

}  // namespace

ConformalPredictor calibrate(const std::string& model, const std::string& data,
                             const std::string& target, const Settings& settings) {
  Graph network = read_onnx(model);
  const DataOptions rows{.data = data, .target = target, .needs_target = true};
  pack_for_rows(rows, network);
  const auto source = open_data(rows, &network);
  remember_images(rows, *source, network);
  CalibrateSettings asked;
  asked.data_name = data;
  asked.provenance = {{"network", name_of_file(model)},
                      {"calibration data", data_file_names(rows)}};
  if (is_by_column(settings)) asked.facts = read_facts(rows, {settings.group, ""});
  return calibrated_on(network, *source, std::move(asked), settings);
}

ConformalPredictor calibrate(const std::string& model, std::span<const float> x,
                             std::span<const float> y, const Settings& settings,
                             const RowInfo& info) {
  const Graph network = with_rows_first(read_onnx(model));
  const TensorInfo& input = network.inputs.at(0);
  if (!input.known_rank || input.shape.empty()) {
    fail(model, ": input '", input.name, "' has no shape; rows in memory cannot be told apart");
  }
  SpanRows source(x, y, {input.shape.begin() + 1, input.shape.end()});
  const auto rows = static_cast<int64_t>(source.size().value());
  std::vector<int64_t> shape = source.row_shape();
  shape.insert(shape.begin(), rows);
  const torch::Tensor values = torch::from_blob(const_cast<float*>(x.data()), shape, torch::kFloat);
  if (const auto found = MissingNumbers(network).find_refused(values)) {
    fail_of_nan("x", found->row, found->column);
  }
  const auto wrong = std::find_if(y.begin(), y.end(), [](float v) { return v != v; });
  if (wrong != y.end()) {
    const int64_t place = wrong - y.begin(), width = static_cast<int64_t>(y.size()) / rows;
    fail_of_nan("y", place / width, place % width);
  }
  CalibrateSettings asked;
  asked.data_name = "x";
  asked.provenance = {{"network", name_of_file(model)}};
  check_info(info, rows, is_by_column(settings), settings.calibration == "weighted");
  asked.facts = facts_of(info);
  Settings named = settings;
  if (!info.groups.empty() && named.group.empty()) named.group = "group";
  return calibrated_on(network, source, std::move(asked), named);
}

}  // namespace fcp

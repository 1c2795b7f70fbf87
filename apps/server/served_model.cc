#include "apps/server/served_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/encoding_text.h"
#include "fcp/data/record.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/levels.h"
#include "fcp/predictor/open_data.h"
#include "fcp/predictor/region_tensors.h"

namespace fcp {
namespace {

// The network's own inputs, whose shapes must be known but for the rows.
InputLayout closed_layout(const Graph& network, const std::string& path) {
  if (is_packed(network)) return *layout_of(network);
  const TensorInfo& input = network.inputs.at(0);
  if (!input.known_rank || input.shape.empty()) {
    fail(path, ": input '", input.name, "' has no shape; rows cannot be told apart");
  }
  const std::vector<int64_t> shape(input.shape.begin() + 1, input.shape.end());
  if (std::find(shape.begin(), shape.end(), kDynamic) != shape.end()) {
    fail(path, ": input '", input.name, "' has an open dimension besides the batch");
  }
  return layout_of({input}, {shape});
}

std::vector<int64_t> row_shape_of(const Graph& network, const InputLayout& layout) {
  if (is_packed(network)) return {layout.columns()};
  return layout.places[0].shape;
}

// As the Open Inference Protocol calls it.
const char* protocol_type(torch::ScalarType type) {
  switch (type) {
    case torch::kDouble:
      return "FP64";
    case torch::kLong:
      return "INT64";
    case torch::kInt:
      return "INT32";
    case torch::kShort:
      return "INT16";
    case torch::kChar:
      return "INT8";
    case torch::kByte:
      return "UINT8";
    case torch::kBool:
      return "BOOL";
    default:
      return "FP32";
  }
}

template <typename Integer>
bool is_within(double value) {
  // The largest of 64 bits is no double; the next power of two is.
  return value >= static_cast<double>(std::numeric_limits<Integer>::min()) &&
         value < static_cast<double>(std::numeric_limits<Integer>::max()) + 1;
}

bool fits_integer(double value, torch::ScalarType type) {
  switch (type) {
    case torch::kLong:
      return is_within<int64_t>(value);
    case torch::kInt:
      return is_within<int32_t>(value);
    case torch::kShort:
      return is_within<int16_t>(value);
    case torch::kChar:
      return is_within<int8_t>(value);
    case torch::kByte:
      return is_within<uint8_t>(value);
    default:
      return true;
  }
}

// What is wrong with a number of an input of this type; empty: nothing. Rows are float32 here: a
// number of more digits would reach the network as another.
std::string number_complaint(double value, torch::ScalarType type, bool missing_allowed) {
  if (std::isnan(value)) return missing_allowed ? "" : "found NaN, expected a number";
  if (!c10::isFloatingType(type) && value != std::floor(value)) {
    return concat("found ", value, ", expected a whole number");
  }
  if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) {
    return concat("found ", value, ", beyond what single precision holds");
  }
  if (!fits_integer(value, type)) {
    return concat("found ", value, ", beyond what ", protocol_type(type), " holds");
  }
  const bool same = static_cast<double>(static_cast<float>(value)) == value;
  if (!is_wide(type) || same || std::abs(value) < 0x1p24) return "";
  return concat("found about ", value, ", which has more than the 24 bits that the server keeps");
}

std::string column_of_groups(const CalibrationArtifact& artifact, const std::string& path) {
  if (artifact.method.calibration.traits().by_weight && !artifact.ratio.defined()) {
    fail(path, ": was calibrated with given weights, which a request cannot bring");
  }
  const std::string column = artifact.method.calibration.group_column();
  if (column.ends_with(".npy")) {
    fail(path, ": was calibrated by groups of the file ", column, ", which a request cannot bring");
  }
  return column;
}

template <typename Number>
std::vector<Number> values_of(const torch::Tensor& tensor) {
  const torch::Tensor plain = tensor.to(torch::kCPU).contiguous();
  const Number* data = plain.data_ptr<Number>();
  return {data, data + plain.numel()};
}

void check_row_numbers(const torch::Tensor& tensor) {
  const torch::Tensor wrong = tensor.isnan().reshape({tensor.size(0), -1}).any(1);
  if (!wrong.any().item<bool>()) return;
  fail("row ", wrong.to(torch::kLong).argmax().item<int64_t>(),
       " (from 0): the network's answer is NaN; do its numbers overflow there?");
}

// The shortest text that reads back as the number.
std::string cell_text(double value) {
  if (std::isnan(value)) return "";
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

std::string cell_of(const RequestTensor& column, size_t row) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&column.data)) return (*texts)[row];
  return cell_text(std::get<std::vector<double>>(column.data)[row]);
}

}  // namespace

ServedModel::ServedModel(std::string name, const std::string& path, torch::Device device)
    : name_(std::move(name)),
      sha256_(file_sha256(path)),
      artifact_(read_artifact(path)),
      facts_(artifact_facts(artifact_)),
      predictor_(artifact_, device),
      layout_(closed_layout(artifact_.network, path)),
      row_shape_(row_shape_of(artifact_.network, layout_)),
      group_column_(column_of_groups(artifact_, path)) {
  torch::NoGradGuard no_grad;
  for (const int64_t size : row_shape_) row_size_ *= static_cast<size_t>(size);
  for (const InputPlace& place : layout_.places) {
    std::vector<int64_t> shape = place.shape;
    shape.insert(shape.begin(), -1);
    inputs_.push_back({place.input.name, protocol_type(place.input.type), std::move(shape)});
  }
  const auto found = artifact_.network.metadata.find(kEncodingKey);
  if (found != artifact_.network.metadata.end()) encoding_ = parse_encoding(found->second);
  missing_allowed_ = MissingNumbers(artifact_.network).columns(row_shape_);
  const auto count = static_cast<size_t>(predictor_.score().classes());
  if (count > 0) {
    classes_ = class_names_of(artifact_.network, count);
    return;
  }
  ServedRows zero{.rows = 1, .x = std::vector<float>(row_size_, 0), .groups = {}};
  if (!group_column_.empty()) zero.groups = {-1};
  const TestInputs inputs = describe(zero);
  const Level level = artifact_.rows.levels.empty() ? Level(0.5) : artifact_.rows.levels.back();
  outputs_ = static_cast<size_t>(predictor_.region(inputs, level).prediction.size(1));
}

std::vector<Level> ServedModel::levels(const std::string& alpha, const Level& otherwise) const {
  std::vector<Level> levels;
  for (size_t from = 0; !alpha.empty() && from <= alpha.size();) {
    const size_t to = std::min(alpha.find(',', from), alpha.size());
    levels.push_back(Level::parse(alpha.substr(from, to - from)));
    if (levels.size() > 16) fail("alpha: at most 16 levels are answered at once");
    from = to + 1;
  }
  if (levels.empty()) levels.push_back(otherwise);
  const std::vector<Level>& kept = artifact_.rows.levels;
  for (const Level& level : levels) {
    if (!kept.empty() && std::find(kept.begin(), kept.end(), level) == kept.end()) {
      fail("alpha ", level.text(), ": the file keeps the radii of other levels alone");
    }
  }
  return levels;
}

ServedRows ServedModel::rows_of(const TensorRequest& request) const {
  return names_inputs(request) ? rows_of_tensors(request) : rows_of_columns(request);
}

// Whether the request has the network's inputs, and not a column of a table that is called alike.
bool ServedModel::names_inputs(const TensorRequest& request) const {
  if (encoding_ && encoding_->columns.size() == 1 && encoding_->columns[0] == inputs_[0].name) {
    return false;
  }
  const bool text =
      std::any_of(request.inputs.begin(), request.inputs.end(), [](const RequestTensor& one) {
        return std::holds_alternative<std::vector<std::string>>(one.data);
      });
  if (encoding_ && text) return false;
  if (inputs_.size() == 1 && request.inputs.size() > 1) return false;
  return std::any_of(request.inputs.begin(), request.inputs.end(), [&](const RequestTensor& one) {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const Input& input) { return input.name == one.name; });
  });
}

ServedRows ServedModel::rows_of_tensors(const TensorRequest& request) const {
  if (!group_column_.empty()) {
    fail("the predictor was calibrated by the column '", group_column_,
         "'; send columns by name instead of a tensor");
  }
  ServedRows rows{.rows = request.inputs[0].rows(), .x = {}, .groups = {}};
  std::vector<const RequestTensor*> given;  // all of them, before memory is taken for their rows
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto found =
        std::find_if(request.inputs.begin(), request.inputs.end(),
                     [&](const RequestTensor& one) { return one.name == inputs_[i].name; });
    if (found == request.inputs.end()) fail("input '", inputs_[i].name, "' is missing");
    if (!std::holds_alternative<std::vector<double>>(found->data)) {
      fail("input '", found->name, "': found BYTES, expected numbers");
    }
    std::vector<int64_t> expected = inputs_[i].shape;
    expected[0] = static_cast<int64_t>(rows.rows);
    if (found->shape != expected || rows.rows == 0) {
      fail("input '", found->name, "': found the shape ", shape_text(found->shape), ", expected ",
           shape_text(inputs_[i].shape), " with ",
           i == 0 ? "at least one row" : concat(rows.rows, " rows"));
    }
    given.push_back(&*found);
  }
  if (request.inputs.size() != inputs_.size()) {
    fail("found ", request.inputs.size(), " inputs, expected ", inputs_.size());
  }
  rows.x.resize(rows.rows * row_size_);  // whose numbers are there, by their shapes
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& numbers = std::get<std::vector<double>>(given[i]->data);
    const InputPlace& place = layout_.places[i];
    const auto width = static_cast<size_t>(place.columns);
    for (size_t k = 0; k < numbers.size(); ++k) {
      const double value = numbers[k];
      const size_t row = k / width, column = k % width;
      const bool missing_allowed = missing_allowed_[static_cast<size_t>(place.first) + column];
      const std::string complaint = number_complaint(value, place.input.type, missing_allowed);
      if (!complaint.empty()) {
        fail("input '", given[i]->name, "': row ", row, ", column ", column,
             " (both from 0): ", complaint);
      }
      rows.x[row * row_size_ + static_cast<size_t>(place.first) + column] =
          static_cast<float>(value);
    }
  }
  return rows;
}

ServedRows ServedModel::rows_of_columns(const TensorRequest& request) const {
  if (!encoding_) {
    fail("found input '", request.inputs[0].name, "', expected '", inputs_[0].name,
         "'; the network does not say how its columns are called");
  }
  ServedRows rows{.rows = request.inputs[0].rows(), .x = {}, .groups = {}};
  if (rows.rows == 0) fail("there are no rows");
  for (const RequestTensor& column : request.inputs) {
    const bool flat =
        column.shape.size() == 1 || (column.shape.size() == 2 && column.shape[1] == 1);
    if (!flat || column.rows() != rows.rows) {
      fail("input '", column.name, "': found the shape ", shape_text(column.shape), ", expected [",
           rows.rows, "] or [", rows.rows, ", 1]");
    }
  }
  for (size_t i = 0; i < rows.rows; ++i) {
    std::map<std::string, std::string> record;
    for (const RequestTensor& column : request.inputs) record[column.name] = cell_of(column, i);
    const std::vector<float> row =
        encode_record(*encoding_, record, concat("row ", i, " (from 0)"));
    for (size_t k = 0; k < row.size(); ++k) {
      if (!std::isnan(row[k]) || missing_allowed_[k]) continue;
      fail("row ", i, " (from 0), column '", encoding_->feature_names()[k],
           "': is missing, expected a number");
    }
    rows.x.insert(rows.x.end(), row.begin(), row.end());
    if (!group_column_.empty()) rows.groups.push_back(group_of(record, i));
  }
  return rows;
}

int64_t ServedModel::group_of(const std::map<std::string, std::string>& record, size_t row) const {
  const auto found = record.find(group_column_);
  if (found == record.end()) fail("row ", row, " (from 0): has no column '", group_column_, "'");
  const std::vector<std::string>& names = artifact_.rows.group_names;
  const auto known = std::find(names.begin(), names.end(), found->second);
  return known == names.end() ? -1 : known - names.begin();
}

TestInputs ServedModel::describe(const ServedRows& rows) const {
  std::vector<int64_t> shape = {static_cast<int64_t>(rows.rows)};
  shape.insert(shape.end(), row_shape_.begin(), row_shape_.end());
  const torch::Tensor x = torch::from_blob(const_cast<float*>(rows.x.data()), shape, torch::kFloat);
  return predictor_.describe(
      x, {.groups = rows.groups, .weights = {}, .first = 0, .places = rows.places});
}

void ServedModel::draw_places(ServedRows& rows) const {
  if (!artifact_.method.calibration.traits().by_feature) return;
  std::random_device source;
  rows.places.resize(rows.rows);
  // 63 bits, which a database keeps as a number with a sign.
  for (uint64_t& place : rows.places) place = uint64_t{source()} << 31 ^ source();
}

ServedAnswer ServedModel::answer(const ServedRows& rows, const std::vector<Level>& levels) const {
  torch::NoGradGuard no_grad;
  const TestInputs inputs = describe(rows);
  ServedAnswer answer{.rows = rows.rows, .prediction = {}, .labels = {}, .at = {}};
  for (const Level& level : levels) {
    const Regions regions = predictor_.region(inputs, level);
    const bool first = answer.at.empty();
    answer.at.emplace_back();
    if (regions.members.defined()) {
      if (first) answer.labels = host_labels(regions.prediction);
      const torch::Tensor members = host_members(regions);
      const bool* in = members.data_ptr<bool>();
      answer.at.back().members.assign(in, in + members.numel());
      continue;
    }
    for (const torch::Tensor& end : {regions.lower, regions.upper, regions.prediction}) {
      check_row_numbers(end);
    }
    if (first) answer.prediction = values_of<float>(regions.prediction.to(torch::kFloat));
    const FloatEnds ends = float_ends(regions.lower, regions.upper);
    answer.at.back().lower = values_of<float>(ends.lower);
    answer.at.back().upper = values_of<float>(ends.upper);
  }
  return answer;
}

ServedTruth ServedModel::judge(const ServedRows& row, const std::vector<float>& truth,
                               const Level& level, const std::optional<Level>& answered) const {
  torch::NoGradGuard no_grad;
  if (truth.size() != outputs_) {
    fail("found ", truth.size(), " numbers of truth, expected ", outputs_);
  }
  const bool label = truth[0] >= 0 && truth[0] == std::floor(truth[0]) &&
                     static_cast<size_t>(truth[0]) < classes_.size();
  if (!classes_.empty() && !label) {
    fail("found the label ", truth[0], ", expected a whole number below ", classes_.size());
  }
  const TestInputs inputs = describe(row);
  const torch::Tensor y = torch::from_blob(const_cast<float*>(truth.data()),
                                           {1, static_cast<int64_t>(truth.size())}, torch::kFloat);
  const Conformity judged = predictor_.judge(inputs, y);
  for (const double score : judged.scores) {
    if (std::isnan(score)) fail("the score of the truth is NaN; is the truth a number?");
  }
  ServedTruth found{.scores = judged.scores, .p_value = judged.p_values.at(0)};
  found.covered = predictor_.within(inputs, y, judged.scores, level).at(0);
  found.size = region_sizes(predictor_.region(inputs, level)).at(0);
  if (answered) found.answered_size = region_sizes(predictor_.region(inputs, *answered)).at(0);
  found.group = judged_group(inputs, truth);
  return found;
}

int64_t ServedModel::judged_group(const TestInputs& inputs, const std::vector<float>& truth) const {
  if (!artifact_.method.calibration.traits().by_group) return 0;
  return artifact_.method.calibration.value(field::group) == kByLabel
             ? static_cast<int64_t>(truth[0])
             : inputs.groups.at(0);
}

std::vector<ResponseTensor> ServedModel::all_tensors(const ServedAnswer& answer,
                                                     const std::vector<Level>& levels) const {
  const auto rows = static_cast<int64_t>(answer.rows), outputs = static_cast<int64_t>(outputs_);
  std::vector<ResponseTensor> all;
  if (classes_.empty()) {
    all.push_back({"prediction", {rows, outputs}, answer.prediction});
  } else {
    all.push_back({"prediction", {rows}, answer.labels});
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    const std::string suffix = levels.size() == 1 ? "" : "_" + levels[i].text();
    const ServedRegions& regions = answer.at.at(i);
    if (classes_.empty()) {
      all.push_back({"lower" + suffix, {rows, outputs}, regions.lower});
      all.push_back({"upper" + suffix, {rows, outputs}, regions.upper});
    } else {
      const auto classes = static_cast<int64_t>(classes_.size());
      all.push_back({"in_set" + suffix, {rows, classes}, regions.members});
    }
  }
  return all;
}

std::vector<ResponseTensor> ServedModel::tensors(const ServedAnswer& answer,
                                                 const std::vector<Level>& levels,
                                                 const TensorRequest& request) const {
  std::vector<ResponseTensor> all = all_tensors(answer, levels);
  if (!request.outputs) {
    for (ResponseTensor& one : all) one.binary = request.binary_outputs;
    return all;
  }
  std::vector<ResponseTensor> chosen;
  for (const RequestedOutput& wanted : *request.outputs) {
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const ResponseTensor& one) { return one.name == wanted.name; });
    if (found == all.end()) fail("there is no output '", wanted.name.substr(0, 80), "'");
    chosen.push_back(*found);
    chosen.back().binary = wanted.binary;
  }
  return chosen;
}

}  // namespace fcp

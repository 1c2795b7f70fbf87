#include "fcp/predictor/input_schema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/array.h"
#include "fcp/data/columns.h"

namespace fcp::internal {
namespace {

// What rows are given in: NumPy has no bfloat16.
const char* given_type(ElementType type) {
  return type_name(type == ElementType::kBFloat16 ? ElementType::kFloat : type);
}

std::string row_of(size_t row) { return concat("row ", row, " (from 0)"); }

// Why a row of this input has no shape of its own; empty: it has one.
std::string open_reason_of(const TensorInfo& input) {
  if (!input.known_rank || input.shape.empty()) {
    return concat("input '", input.name, "' has no shape; rows cannot be told apart");
  }
  if (std::find(input.shape.begin() + 1, input.shape.end(), kDynamic) == input.shape.end()) {
    return "";
  }
  return concat("input '", input.name, "' has an open dimension besides the batch");
}

void check_count(const char* name, size_t found, size_t expected) {
  if (found == expected) return;
  if (expected == 0) fail(name, ": found ", found, ", but the calibration uses none");
  fail(name, ": found ", found, " for ", expected, " rows; the calibration needs one per row");
}

size_t count_of(const NamedValues& values) {
  return std::visit([](const auto& any) { return any.size(); }, values.values);
}

std::vector<int64_t> shape_of_values(const NamedValues& values) {
  if (values.shape.empty()) return {static_cast<int64_t>(count_of(values))};
  int64_t count = 1;
  for (const int64_t size : values.shape) count *= size;
  if (count != static_cast<int64_t>(count_of(values))) {
    fail("input '", values.name, "': found ", count_of(values), " values for the shape ",
         shape_text(values.shape));
  }
  return values.shape;
}

size_t rows_in(const NamedValues& values) {
  return static_cast<size_t>(shape_of_values(values)[0]);
}

template <typename Integer>
bool is_within(double value) {
  // The largest of 64 bits is no double; the next power of two is.
  return value >= static_cast<double>(std::numeric_limits<Integer>::min()) &&
         value < static_cast<double>(std::numeric_limits<Integer>::max()) + 1;
}

bool fits_integer(double value, ElementType type) {
  switch (type) {
    case ElementType::kInt64:
      return is_within<int64_t>(value);
    case ElementType::kInt32:
      return is_within<int32_t>(value);
    case ElementType::kInt16:
      return is_within<int16_t>(value);
    case ElementType::kInt8:
      return is_within<int8_t>(value);
    case ElementType::kUint8:
      return is_within<uint8_t>(value);
    case ElementType::kBool:
      return value == 0 || value == 1;
    default:
      return true;
  }
}

// What is wrong with a number of an input of this type; empty: nothing.
std::string complaint_about(double value, ElementType type, bool may_be_missing) {
  if (std::isnan(value)) return may_be_missing ? "" : "found NaN, expected a number";
  if (!is_floating(type) && value != std::floor(value)) {
    return concat("found ", value, ", expected a whole number");
  }
  const bool wide = is_wide(type);
  if (!wide && std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) {
    return concat("found ", value, ", beyond what single precision holds");
  }
  if (!fits_integer(value, type)) {
    return concat("found ", value, ", beyond what ", type_name(type), " holds");
  }
  if (type != ElementType::kInt64 || std::abs(value) < 0x1p53) return "";
  return concat("found about ", value, ", which has more than the 53 bits of a double");
}

// "'a', 'b'"; of many the first.
std::string in_quotes(const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += concat(i == 0 ? "'" : ", '", names[i].substr(0, 80), "'");
  }
  if (names.size() > kMost) text += concat(" … (", names.size(), " in all)");
  return text;
}

// As in a file: a column that is not there is not one whose cells are empty.
void check_names(std::span<const NamedValues> values, std::vector<std::string> expected,
                 const std::string& group_column) {
  const auto is_given = [&](const std::string& name) {
    return std::any_of(values.begin(), values.end(),
                       [&](const NamedValues& one) { return one.name == name; });
  };
  std::vector<std::string> absent, unknown;
  for (const std::string& name : expected) {
    if (!is_given(name)) absent.push_back(name);
  }
  const bool grouped = !group_column.empty() &&
                       std::find(expected.begin(), expected.end(), group_column) == expected.end();
  if (grouped) expected.push_back(group_column);
  for (const NamedValues& one : values) {
    const bool known = std::find(expected.begin(), expected.end(), one.name) != expected.end();
    if (!known) unknown.push_back(one.name);
  }
  if (!absent.empty()) {
    fail("no column ", in_quotes(absent), "; the columns are ", in_quotes(expected));
  }
  if (unknown.empty()) return;
  fail("there is no column ", in_quotes(unknown), "; the columns are ", in_quotes(expected));
}

// The cells of a column by its name; without any where it is not among the values.
ColumnCells cells_of(std::span<const NamedValues> values, const std::string& name) {
  for (const NamedValues& one : values) {
    if (one.name != name) continue;
    if (const auto* numbers = std::get_if<std::vector<double>>(&one.values)) {
      return {.numbers = *numbers};
    }
    const auto& texts = std::get<std::vector<std::string>>(one.values);
    return {.text = [&texts](size_t row) { return &texts[row]; }};
  }
  return {.text = [](size_t) { return nullptr; }};
}

ColumnCells cells_of(std::span<const Record> rows, const std::string& name) {
  return {.text = [rows, &name](size_t row) {
    const auto found = rows[row].find(name);
    return found == rows[row].end() ? nullptr : &found->second;
  }};
}

}  // namespace

void check_info(const RowInfo& info, size_t rows, bool needs_groups, bool needs_weights) {
  check_count("groups", info.groups.size(), needs_groups ? rows : 0);
  check_count("weights", info.weights.size(), needs_weights ? rows : 0);
  for (size_t i = 0; i < info.weights.size(); ++i) {
    if (info.weights[i] >= 0 && !std::isinf(info.weights[i])) continue;
    fail("weights: ", row_of(i), " is ", info.weights[i],
         ", expected a finite number, not negative");
  }
}

SchemaData::SchemaData(const Graph& network) : missing_(network), exact_(wants_exact(network)) {
  network_.inputs = network.inputs;
  network_.metadata = network.metadata;
  if (is_packed(network)) {
    layout_ = *layout_of(network);
    row_shape_ = {layout_.columns()};
  } else {
    const TensorInfo& input = network.inputs.at(0);
    open_reason_ = open_reason_of(input);
    if (open_reason_.empty()) {
      row_shape_.assign(input.shape.begin() + 1, input.shape.end());
      layout_ = layout_of({input}, {row_shape_});
    } else {
      const bool ranked = input.known_rank && !input.shape.empty();
      const auto first = input.shape.begin() + (ranked ? 1 : 0);
      inputs_.push_back({input.name, given_type(input.type), {first, input.shape.end()}});
    }
  }
  for (const InputPlace& place : layout_.places) {
    inputs_.push_back({place.input.name, given_type(place.input.type), place.shape});
  }
  const auto columns = network.metadata.find(kEncodingKey);
  if (columns != network.metadata.end()) encoding_ = parse_encoding(columns->second);
  if (encoding_) columns_ = encoding_->columns;
}

SchemaData::SchemaData(const CalibrationArtifact& artifact) : SchemaData(artifact.network) {
  const CalibrationOptions& calibration = artifact.method.calibration;
  group_column_ = calibration.group_column();
  if (!group_column_.empty()) groups_ = artifact.rows.group_names;
  needs_weights_ = calibration.traits().by_weight && !artifact.ratio.defined();
}

const std::vector<int64_t>& SchemaData::row_shape() const {
  if (!open_reason_.empty()) fail(open_reason_);
  return row_shape_;
}

size_t SchemaData::row_size() const {
  size_t size = 1;
  for (const int64_t part : row_shape()) size *= static_cast<size_t>(part);
  return size;
}

int64_t SchemaData::group_number(const std::string& name) const {
  const auto found = std::find(groups_.begin(), groups_.end(), name);
  return found == groups_.end() ? -1 : found - groups_.begin();
}

BatchData SchemaData::batch_of_rows(torch::Tensor x, const RowInfo& info) const {
  BatchData batch{.x = std::move(x)};
  const size_t rows = batch.rows();
  // What is missing is missed when the rows are answered: a point prediction needs neither.
  check_info(info, rows, !group_column_.empty() && !info.groups.empty(),
             needs_weights_ && !info.weights.empty());
  if (!info.places.empty() && info.places.size() != rows) {
    fail("places: found ", info.places.size(), " for ", rows, " rows");
  }
  for (const std::string& name : info.groups) batch.known.groups.push_back(group_number(name));
  batch.known.weights = info.weights;
  batch.known.places = info.places;
  batch.placed = !info.places.empty();
  return batch;
}

void SchemaData::check_known(const BatchData& batch) const {
  const size_t rows = batch.rows(), groups = batch.known.groups.size();
  if (!group_column_.empty() && groups != rows) {
    if (!batch.no_groups.empty()) fail(batch.no_groups);
    if (groups == 0) fail("groups: ", kNeedsGroups);
    check_count("groups", groups, rows);
  }
  if (!needs_weights_) return;
  if (batch.known.weights.empty()) fail("weights: ", kNeedsWeights);
  check_count("weights", batch.known.weights.size(), rows);
}

torch::Tensor SchemaData::checked(const torch::Tensor& rows, const RowNames& row_name) const {
  const auto place = [&](int64_t row) { return row_name(static_cast<size_t>(row)); };
  if (const auto found = missing_.find_refused(rows)) {
    fail(place(found->row), " has NaN in column ", found->column, ", expected a number");
  }
  torch::Tensor typed = rows.to(row_type());
  check_input_numbers(typed, network_, place);
  return typed;
}

BatchData SchemaData::encode(const torch::Tensor& x, const RowInfo& info) const {
  if (x.dim() == 0) fail("x: is a single number, expected rows");
  const torch::Tensor rows = x.dim() == 1 ? x.unsqueeze(1) : x;
  if (rows.size(0) == 0) fail("x: has no rows");
  return batch_of_rows(checked(rows, [](size_t row) { return "x: " + row_of(row); }), info);
}

BatchData SchemaData::encode(std::span<const float> x, const RowInfo& info) const {
  const size_t width = row_size();
  if (x.empty() || width == 0 || x.size() % width != 0) {
    fail("x: found ", x.size(), " numbers, expected rows of ", width);
  }
  std::vector<int64_t> shape = row_shape_;
  shape.insert(shape.begin(), static_cast<int64_t>(x.size() / width));
  const torch::Tensor rows = torch::from_blob(const_cast<float*>(x.data()), shape, torch::kFloat);
  return encode(rows.clone(), info);
}

BatchData SchemaData::encode(std::span<const Record> rows, const RowInfo& info) const {
  if (!encoding_) fail("the network does not say how its columns are called; pass numbers instead");
  if (rows.empty()) fail("there are no rows");
  std::vector<ColumnCells> cells;
  for (const std::string& name : encoding_->columns) cells.push_back(cells_of(rows, name));
  return batch_of_columns(cells, cells_of(rows, group_column_), rows.size(), info);
}

// `groups`: the cells of the group column, where there is one.
BatchData SchemaData::batch_of_columns(const std::vector<ColumnCells>& cells,
                                       const ColumnCells& groups, size_t rows,
                                       const RowInfo& info) const {
  const std::vector<std::string> names = encoding_->feature_names();
  const auto width = static_cast<int64_t>(names.size());
  torch::Tensor x = torch::empty({static_cast<int64_t>(rows), width}, torch::kFloat);
  auto notes = std::make_shared<const CellNotes>(
      encode_columns(*encoding_, cells, rows, row_of, x.data_ptr<float>()));
  std::vector<int64_t> shape = row_shape_;
  shape.insert(shape.begin(), static_cast<int64_t>(rows));
  x = x.reshape(shape);
  if (const auto found = missing_.find_refused(x)) {
    fail(row_of(static_cast<size_t>(found->row)), ", column '",
         names.at(static_cast<size_t>(found->column)), "': is missing, expected a number");
  }
  check_input_numbers(
      x, network_, [](int64_t row) { return row_of(static_cast<size_t>(row)); }, names);
  BatchData batch = batch_of_rows(x.to(row_type()), info);
  batch.row_name = row_of;
  batch.cells = std::move(notes);
  if (info.groups.empty() && !group_column_.empty()) add_groups(groups, batch);
  return batch;
}

void SchemaData::add_groups(const ColumnCells& cells, BatchData& batch) const {
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (!cells.text) {
      batch.known.groups.push_back(group_number(cell_text(cells.numbers[i])));
      continue;
    }
    const std::string* const text = cells.text(i);
    if (text == nullptr) {
      batch.known.groups.clear();
      batch.no_groups = concat(row_of(i), ": has no column '", group_column_, "'; ", kNeedsGroups);
      return;
    }
    batch.known.groups.push_back(group_number(*text));
  }
}

// Whether these are the network's inputs, and not a column of a table that is called alike.
bool SchemaData::names_inputs(std::span<const NamedValues> values) const {
  if (encoding_ && encoding_->columns.size() == 1 && encoding_->columns[0] == inputs_[0].name) {
    return false;
  }
  const bool text = std::any_of(values.begin(), values.end(), [](const NamedValues& one) {
    return std::holds_alternative<std::vector<std::string>>(one.values);
  });
  if (encoding_ && (text || (inputs_.size() == 1 && values.size() > 1))) return false;
  return std::any_of(values.begin(), values.end(), [&](const NamedValues& one) {
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const InputSchema::Input& input) { return input.name == one.name; });
  });
}

torch::Tensor SchemaData::inputs_side_by_side(std::span<const NamedValues> values) const {
  const size_t rows = rows_in(values[0]);
  std::vector<const NamedValues*> given;  // all of them, before memory is taken for their rows
  for (const InputSchema::Input& input : inputs_) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const NamedValues& one) { return one.name == input.name; });
    if (found == values.end()) fail("input '", input.name, "' is missing");
    if (!std::holds_alternative<std::vector<double>>(found->values)) {
      fail("input '", found->name, "': found BYTES, expected numbers");
    }
    std::vector<int64_t> expected = input.shape, any = input.shape;
    expected.insert(expected.begin(), static_cast<int64_t>(rows));
    any.insert(any.begin(), -1);
    if (const auto shape = shape_of_values(*found); shape != expected || rows == 0) {
      fail("input '", found->name, "': found the shape ", shape_text(shape), ", expected ",
           shape_text(any), " with ", given.empty() ? "at least one row" : concat(rows, " rows"));
    }
    given.push_back(&*found);
  }
  if (values.size() != inputs_.size()) {
    fail("found ", values.size(), " inputs, expected ", inputs_.size());
  }
  const std::vector<bool> may_be_missing = this->may_be_missing();
  const auto all = static_cast<int64_t>(row_size());
  torch::Tensor x = torch::empty({static_cast<int64_t>(rows), all}, torch::kDouble);
  double* const out = x.data_ptr<double>();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& numbers = std::get<std::vector<double>>(given[i]->values);
    const InputPlace& place = layout_.places[i];
    const auto width = static_cast<size_t>(place.columns), first = static_cast<size_t>(place.first);
    for (size_t k = 0; k < numbers.size(); ++k) {
      const size_t row = k / width, column = k % width;
      const std::string complaint =
          complaint_about(numbers[k], place.input.type, may_be_missing[first + column]);
      if (!complaint.empty()) {
        fail("input '", given[i]->name, "': row ", row, ", column ", column,
             " (both from 0): ", complaint);
      }
      out[row * static_cast<size_t>(all) + first + column] = numbers[k];
    }
  }
  std::vector<int64_t> shape = row_shape_;
  shape.insert(shape.begin(), static_cast<int64_t>(rows));
  return x.to(row_type()).reshape(shape);
}

// All columns of the table and no others, each with one cell for each row.
void SchemaData::check_columns(std::span<const NamedValues> values) const {
  if (!encoding_) {
    fail("found input '", values[0].name, "', expected '", inputs_[0].name,
         "'; the network does not say how its columns are called");
  }
  check_names(values, encoding_->columns, group_column_);
  const size_t rows = rows_in(values[0]);
  if (rows == 0) fail("there are no rows");
  for (const NamedValues& column : values) {
    const std::vector<int64_t> shape = shape_of_values(column);
    const bool flat = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
    if (!flat || rows_in(column) != rows) {
      fail("input '", column.name, "': found the shape ", shape_text(shape), ", expected [", rows,
           "] or [", rows, ", 1]");
    }
  }
}

// Groups and weights that come as values of their own; the other values, where there were some.
std::optional<std::vector<NamedValues>> SchemaData::take_info(std::span<const NamedValues> values,
                                                              RowInfo& info) const {
  const auto is_own = [&](const std::string& name) {
    return std::find(columns_.begin(), columns_.end(), name) != columns_.end() ||
           std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const InputSchema::Input& input) { return input.name == name; });
  };
  const auto is_info = [&](const NamedValues& one) {
    const bool groups =
        !group_column_.empty() && (one.name == group_column_ || one.name == "groups");
    return (groups || (needs_weights_ && one.name == "weights")) && !is_own(one.name);
  };
  if (std::none_of(values.begin(), values.end(), is_info)) return std::nullopt;
  std::vector<NamedValues> others;
  for (const NamedValues& one : values) {
    const auto* numbers = std::get_if<std::vector<double>>(&one.values);
    const auto* texts = std::get_if<std::vector<std::string>>(&one.values);
    if (!is_info(one)) {
      others.push_back(one);
    } else if (needs_weights_ && one.name == "weights") {
      if (numbers == nullptr) fail("weights: found BYTES, expected numbers");
      info.weights = *numbers;
    } else if (texts != nullptr) {
      info.groups = *texts;
    } else {
      info.groups.clear();
      for (const double value : *numbers) info.groups.push_back(cell_text(value));
    }
  }
  return others;
}

BatchData SchemaData::encode(std::span<const NamedValues> given, const RowInfo& known) const {
  RowInfo info = known;
  const std::optional<std::vector<NamedValues>> others = take_info(given, info);
  const std::span<const NamedValues> values = others ? std::span(*others) : given;
  if (values.empty()) fail("there are no inputs");
  row_shape();  // must be known
  if (!names_inputs(values)) {
    check_columns(values);
    std::vector<ColumnCells> cells;
    for (const std::string& name : encoding_->columns) cells.push_back(cells_of(values, name));
    return batch_of_columns(cells, cells_of(values, group_column_), rows_in(values[0]), info);
  }
  BatchData batch = batch_of_rows(inputs_side_by_side(values), info);
  batch.row_name = row_of;
  if (!group_column_.empty()) {
    batch.no_groups = concat("groups: ", kNeedsGroups, ", as '", group_column_, "' or 'groups'");
  }
  return batch;
}

}  // namespace fcp::internal

namespace fcp {

using internal::Access;

const std::vector<InputSchema::Input>& InputSchema::inputs() const { return data_->inputs(); }
size_t InputSchema::row_size() const { return data_->row_size(); }
const std::vector<std::string>& InputSchema::columns() const { return data_->columns(); }
std::vector<bool> InputSchema::may_be_missing() const { return data_->may_be_missing(); }
const std::string& InputSchema::group_column() const { return data_->group_column(); }
const std::vector<std::string>& InputSchema::groups() const { return data_->groups(); }
bool InputSchema::needs_weights() const { return data_->needs_weights(); }

Batch InputSchema::encode(std::span<const Record> rows, const RowInfo& info) const {
  return Access::batch(data_->encode(rows, info));
}

Batch InputSchema::encode(std::span<const float> x, const RowInfo& info) const {
  return Access::batch(data_->encode(x, info));
}

Batch InputSchema::encode(std::span<const NamedValues> values, const RowInfo& info) const {
  return Access::batch(data_->encode(values, info));
}

}  // namespace fcp

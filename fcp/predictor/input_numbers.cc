#include "fcp/predictor/input_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/data/columns.h"
#include "fcp/data/row_sources.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/graph/missing_values.h"
#include "fcp/nn/ops/ml/text_inputs.h"
#include "fcp/predictor/open_data.h"

namespace fcp {
namespace {

// All digits that tell the number from its neighbours.
std::string plain_number(double value) {
  char text[32];
  const bool digits = value == std::floor(value) && std::abs(value) < 0x1p63;
  const auto [end, error] =
      digits ? std::to_chars(text, text + sizeof text, static_cast<int64_t>(value))
             : std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

// Least and largest number of an integer type; none: it is not one.
struct IntegerRange {
  double least, most;
  const char* name;
};

std::optional<IntegerRange> range_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return IntegerRange{0, 1, "bool"};
    case ElementType::kUint8:
      return IntegerRange{0, 255, "uint8"};
    case ElementType::kInt8:
      return IntegerRange{-128, 127, "int8"};
    case ElementType::kInt16:
      return IntegerRange{-32768, 32767, "int16"};
    case ElementType::kInt32:
      return IntegerRange{-2147483648.0, 2147483647.0, "int32"};
    case ElementType::kInt64:
      return IntegerRange{-0x1p53, 0x1p53, "int64"};
    default:
      return std::nullopt;
  }
}

// The columns of x that one input gets.
void check_columns(const torch::Tensor& columns, int64_t first, const TensorInfo& input,
                   const std::function<std::string(int64_t, int64_t)>& place) {
  const std::optional<IntegerRange> range = range_of(input.type);
  if (!range) return;
  const bool rounded = columns.scalar_type() == torch::kFloat;  // maybe when it was read
  const double limit = rounded ? 0x1p24 : 0x1p53;
  const torch::Tensor numbers = columns.to(torch::kDouble);
  const torch::Tensor wrong = (numbers != numbers.floor())
                                  .logical_or(numbers.abs() >= limit)
                                  .logical_or(numbers < range->least)
                                  .logical_or(numbers > range->most);
  if (!wrong.any().item<bool>()) return;
  const int64_t at = wrong.flatten().to(torch::kByte).argmax().item<int64_t>();
  const double value = numbers.flatten()[at].item<double>();
  const std::string where = place(at / columns.size(1), first + at % columns.size(1));
  const bool whole = value == std::floor(value);
  const bool fits = value >= range->least && value <= range->most;
  const std::string expected =
      !whole || !fits ? concat("a whole number of type ", range->name)
                      : concat("below ", rounded ? "2^24 in float32" : "2^53", ", to be exact");
  fail(where, ": found ", plain_number(value), ", expected ", expected, " for the input '",
       input.name, "'");
}

// Where a number of a row stands: its column's name, or where it is in the input.
std::string column_place(const Graph& network, const std::string& row, int64_t column,
                         const std::vector<std::string>& column_names) {
  const auto i = static_cast<size_t>(column);
  if (i < column_names.size()) return concat(row, ", column '", column_names[i], "'");
  if (!is_packed(network)) return concat(row, ", element ", column, " (from 0)");
  const InputLayout layout = *layout_of(network);
  const InputPlace& input = layout.place_of(column);
  return concat(row, ", ", input.column_name(column - input.first));
}

// A source whose numbers are checked as they are read.
class CheckedRows : public ForwardedRows {
 public:
  CheckedRows(std::unique_ptr<RowSource> source, const Graph& network, MissingNumbers missing)
      : ForwardedRows(std::move(source)), missing_(std::move(missing)) {
    network_.inputs = network.inputs;
    network_.metadata = network.metadata;
    exact_ = wants_exact(network);
  }

  bool next(size_t count, Rows& out) override {
    const bool some = ForwardedRows::next(count, out);
    if (some) {
      if (!exact_) out.x.exact.clear();
      if (!network_.metadata.contains(kTargetOffsetKey)) out.y.exact.clear();
      const auto place = [&](int64_t row) { return out.place(static_cast<size_t>(row)); };
      if (const auto found = missing_.find_refused(view(out.x))) {
        fail(column_place(network_, place(found->row), found->column, column_names()),
             ": the value is missing, expected a number; the network computes with it");
      }
      check_input_numbers(view(out.x), network_, place, column_names());
    }
    return some;
  }

 private:
  Graph network_;  // its inputs alone
  bool exact_ = false;
  MissingNumbers missing_;
};

bool has_nan(const torch::Tensor& x) {
  if (!x.is_floating_point() || x.numel() == 0) return false;
  const bool plain = x.is_cpu() && x.is_contiguous();
  const auto count = static_cast<size_t>(x.numel());
  if (plain && x.scalar_type() == torch::kFloat) return any_nan(x.data_ptr<float>(), count);
  if (plain && x.scalar_type() == torch::kDouble) return any_nan(x.data_ptr<double>(), count);
  return x.isnan().any().item<bool>();
}

}  // namespace

bool wants_exact(const Graph& network) {
  return std::any_of(network.inputs.begin(), network.inputs.end(),
                     [](const TensorInfo& input) { return is_wide(input.type); });
}

void check_input_numbers(const torch::Tensor& x, const Graph& network,
                         const std::function<std::string(int64_t)>& place,
                         const std::vector<std::string>& column_names) {
  if (x.numel() == 0 || network.inputs.empty()) return;
  const bool packed = is_packed(network);
  if (!packed && !range_of(network.inputs[0].type)) return;  // any number will do
  const torch::Tensor rows = x.reshape({x.size(0), -1});
  const std::optional<InputLayout> layout =
      packed ? layout_of(network) : std::optional<InputLayout>();
  const auto where = [&](int64_t row, int64_t column) {
    return column_place(network, place(row), column, column_names);
  };
  if (!layout) return check_columns(rows, 0, network.inputs[0], where);
  if (rows.size(1) != layout->columns()) return;  // the network itself will say so
  for (const InputPlace& input : layout->places) {
    check_columns(rows.narrow(1, input.first, input.columns), input.first, input.input, where);
  }
}

MissingNumbers::MissingNumbers(const Graph& network, const std::string& input) {
  const auto encoding = network.metadata.find(kEncodingKey);
  all_ = encoding != network.metadata.end() && !network.metadata.contains(kTextsKey) &&
         accepts_missing(parse_encoding(encoding->second));
  const auto own =
      std::find_if(network.inputs.begin(), network.inputs.end(),
                   [&](const TensorInfo& info) { return input.empty() || info.name == input; });
  if (all_ || own == network.inputs.end() || !is_floating(own->type)) return;
  input_ = own->name;
  if (reads_missing(network, input_)) network_ = std::make_shared<const Graph>(network);
}

std::vector<bool> MissingNumbers::columns(const std::vector<int64_t>& row_shape) const {
  int64_t count = 1;
  for (const int64_t size : row_shape) count *= size;
  if (network_ == nullptr) return std::vector<bool>(static_cast<size_t>(count), all_);
  const std::lock_guard lock(known_->mutex);
  if (known_->row_shape != row_shape) {
    known_->columns = missing_columns(*network_, input_, row_shape);
    known_->row_shape = row_shape;
  }
  return known_->columns;
}

std::optional<MissingNumbers::Place> MissingNumbers::find_refused(const torch::Tensor& x) const {
  if (all_ || x.dim() == 0 || !has_nan(x)) return std::nullopt;
  const std::vector<int64_t> row_shape(x.sizes().begin() + 1, x.sizes().end());
  const std::vector<bool> allowed = columns(row_shape);
  const torch::Tensor missing = x.isnan().reshape({x.size(0), -1}).to(torch::kCPU).contiguous();
  const bool* at = missing.data_ptr<bool>();
  const auto width = missing.size(1);
  for (int64_t i = 0; i < missing.numel(); ++i) {
    if (at[i] && !allowed[static_cast<size_t>(i % width)]) return Place{i / width, i % width};
  }
  return std::nullopt;
}

std::unique_ptr<RowSource> with_checked_numbers(std::unique_ptr<RowSource> rows,
                                                const Graph& network,
                                                const MissingNumbers& missing) {
  const auto checked = [](const TensorInfo& input) { return range_of(input.type).has_value(); };
  bool any = std::any_of(network.inputs.begin(), network.inputs.end(), checked);
  if (is_packed(network)) {
    const InputLayout layout = *layout_of(network);
    any = std::any_of(layout.places.begin(), layout.places.end(),
                      [&](const InputPlace& place) { return checked(place.input); });
  }
  any = any || network.metadata.contains(kTextsKey);  // whose encoding makes NaN of empty cells
  if (!any && !missing.any()) return rows;
  return std::make_unique<CheckedRows>(std::move(rows), network, missing);
}

}  // namespace fcp

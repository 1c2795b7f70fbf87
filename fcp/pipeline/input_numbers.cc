#include "fcp/pipeline/input_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/forwarded_rows.h"
#include "fcp/network/input_layout.h"
#include "fcp/pipeline/open_data.h"

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

std::optional<IntegerRange> range_of(torch::ScalarType type) {
  switch (type) {
    case torch::kBool:
      return IntegerRange{0, 1, "bool"};
    case torch::kByte:
      return IntegerRange{0, 255, "uint8"};
    case torch::kChar:
      return IntegerRange{-128, 127, "int8"};
    case torch::kShort:
      return IntegerRange{-32768, 32767, "int16"};
    case torch::kInt:
      return IntegerRange{-2147483648.0, 2147483647.0, "int32"};
    case torch::kLong:
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

// A source whose numbers are checked as they are read.
class CheckedRows : public ForwardedRows {
 public:
  CheckedRows(std::unique_ptr<RowSource> source, const Graph& network)
      : ForwardedRows(std::move(source)) {
    network_.inputs = network.inputs;
    network_.metadata = network.metadata;
  }

  bool next(size_t count, Rows& out) override {
    const bool some = ForwardedRows::next(count, out);
    if (some) {
      check_input_numbers(
          view(out.x), network_,
          [&](int64_t row) { return row_place(out.first_row + static_cast<size_t>(row)); },
          column_names());
    }
    return some;
  }

 private:
  Graph network_;  // its inputs alone
};

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
    const auto i = static_cast<size_t>(column);
    if (i < column_names.size()) return concat(place(row), ", column '", column_names[i], "'");
    if (!layout) return concat(place(row), ", element ", column, " (from 0)");
    const InputPlace& input = layout->place_of(column);
    return concat(place(row), ", ", input.column_name(column - input.first));
  };
  if (!layout) return check_columns(rows, 0, network.inputs[0], where);
  if (rows.size(1) != layout->columns()) return;  // the network itself will say so
  for (const InputPlace& input : layout->places) {
    check_columns(rows.narrow(1, input.first, input.columns), input.first, input.input, where);
  }
}

std::unique_ptr<RowSource> with_checked_numbers(std::unique_ptr<RowSource> rows,
                                                const Graph& network) {
  const auto checked = [](const TensorInfo& input) { return range_of(input.type).has_value(); };
  bool any = std::any_of(network.inputs.begin(), network.inputs.end(), checked);
  if (is_packed(network)) {
    const InputLayout layout = *layout_of(network);
    any = std::any_of(layout.places.begin(), layout.places.end(),
                      [&](const InputPlace& place) { return checked(place.input); });
  }
  if (!any) return rows;
  return std::make_unique<CheckedRows>(std::move(rows), network);
}

}  // namespace fcp

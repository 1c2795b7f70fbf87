#include "fcp/predictor/network_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/npz.h"
#include "fcp/data/row_sources.h"
#include "fcp/nn/graph/batch_axis.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/ops/ml/text_inputs.h"

namespace fcp {
namespace {

using Names = std::vector<std::string>;

Names names_of_inputs(const std::vector<TensorInfo>& inputs) {
  Names names;
  for (const TensorInfo& input : inputs) names.push_back(input.name);
  return names;
}

Names columns_of_input(const std::string& input, int64_t count) {
  if (count == 1) return {input};
  Names names;
  for (int64_t i = 0; i < count; ++i) {
    names.push_back(input + "_");
    names.back() += std::to_string(i);
  }
  return names;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// How many columns are called after the input.
int64_t count_columns(const Names& columns, const std::string& input) {
  if (contains(columns, input)) return 1;
  int64_t count = 0;
  while (contains(columns, concat(input, "_", count))) ++count;
  return count;
}

// The shape of one row of `count` numbers, as far as the file leaves it open.
std::vector<int64_t> shape_for_count(const TensorInfo& input, int64_t count,
                                     const std::string& file) {
  if (!input.known_rank) return {count};
  std::vector<int64_t> shape(input.shape.begin() + 1, input.shape.end());
  int64_t known = 1;
  for (const int64_t size : shape) known *= size == kDynamic ? 1 : size;
  const auto open = std::count(shape.begin(), shape.end(), kDynamic);
  if (open > 1) {
    fail(file, ": input '", input.name, "' leaves ", open,
         " dimensions open, which columns do not tell; use an .npz archive");
  }
  if (open == 1 && count % known == 0) {
    std::replace(shape.begin(), shape.end(), kDynamic, count / known);
    known = count;
  }
  if (known != count) {
    fail(file, ": found ", count, " columns for the input '", input.name, "', expected ",
         open == 1 ? "a multiple of " : "", known);
  }
  return shape;
}

// Of columns with other names: the inputs in order, by the sizes that the network fixes.
std::vector<std::vector<int64_t>> shapes_in_order(const Graph& network, const Names& columns,
                                                  const std::string& file) {
  std::vector<std::vector<int64_t>> shapes;
  int64_t total = 0;
  const TensorInfo* open = nullptr;
  for (const TensorInfo& input : network.inputs) {
    shapes.emplace_back(input.shape.empty() ? input.shape.begin() : input.shape.begin() + 1,
                        input.shape.end());
    int64_t count = 1;
    for (const int64_t size : shapes.back()) {
      if (size == kDynamic) open = &input;
      count *= size;
    }
    if (!input.known_rank) open = &input;
    total += count;
  }
  if (open != nullptr || total != static_cast<int64_t>(columns.size())) {
    const std::string& first = network.inputs[0].name;
    const std::string expected =
        open == nullptr ? concat(" or ", total, " columns in their order") : "";
    fail(file, ": the network has ", network.inputs.size(), " inputs, found ", columns.size(),
         " columns; expected columns called after the inputs, as '", first, "' or '", first, "_0'",
         expected, ", or an .npz archive with one entry per input");
  }
  return shapes;
}

std::vector<std::vector<int64_t>> shapes_of_columns(const DataOptions& options,
                                                    const Graph& network) {
  const std::string file = file_list(options.data)[0];
  const Names columns = open_rows(file, options.target, options.csv)->column_names();
  std::vector<std::vector<int64_t>> shapes;
  for (const TensorInfo& input : network.inputs) {
    const int64_t count = count_columns(columns, input.name);
    if (count == 0) return shapes_in_order(network, columns, file);
    shapes.push_back(shape_for_count(input, count, file));
  }
  return shapes;
}

// The encoding that reads these columns alone, in this order.
CsvEncoding encoding_of_columns(const CsvEncoding& all, const Names& names) {
  CsvEncoding some{.header = all.header, .width = all.width};
  for (const std::string& name : names) {
    const auto found = std::find(all.columns.begin(), all.columns.end(), name);
    const auto i = static_cast<size_t>(found - all.columns.begin());
    some.columns.push_back(name);
    some.positions.push_back(all.positions[i]);
    some.categories.push_back(all.categories[i]);
    if (!all.means.empty()) some.means.push_back(all.means[i]);
  }
  return some;
}

std::unique_ptr<RowSource> open_columns(const std::string& data, const std::string& target,
                                        const InputLayout& layout, CsvOptions csv) {
  if (!csv.categorical.empty()) {
    fail_option("categorical", "applies only to networks with one input");
  }
  Names wanted;
  for (const InputPlace& place : layout.places) {
    for (std::string& name : columns_of_input(place.input.name, place.columns)) {
      wanted.push_back(std::move(name));
    }
  }
  auto rows = open_rows(data, target, csv);
  const Names& found = rows->column_names();
  const bool by_name = std::all_of(wanted.begin(), wanted.end(),
                                   [&](const std::string& name) { return contains(found, name); });
  if (by_name) {
    csv.encoding = encoding_of_columns(*rows->encoding(), wanted);
    return open_rows(data, target, csv);
  }
  if (found.size() != wanted.size()) {
    fail(data, ": found ", found.size(), " columns besides the target, expected ", wanted.size(),
         " as the network's inputs have numbers");
  }
  return rows;
}

std::unique_ptr<RowSource> open_archives(const DataOptions& options, const InputLayout& layout,
                                         const CsvOptions& csv) {
  std::vector<TensorInfo> inputs;
  for (const InputPlace& place : layout.places) inputs.push_back(place.input);
  const Names entries = names_of_inputs(inputs);
  const Names files = file_list(options.data);
  Names targets = file_list(options.target);
  std::vector<std::unique_ptr<RowSource>> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto shapes = archive_row_shapes(files[i], entries);
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (shapes[k] == layout.places[k].shape) continue;
      fail(files[i], ": entry '", entries[k], "': found rows of shape ", shape_text(shapes[k]),
           ", expected ", shape_text(layout.places[k].shape), " as in calibration");
    }
    const std::string& target = targets.size() == files.size() ? targets[i] : options.target;
    parts.push_back(open_archive(files[i], entries, target, csv));
  }
  return parts.size() == 1 ? std::move(parts[0]) : join_rows(std::move(parts), files);
}

}  // namespace

void name_text_columns(Graph& network) {
  const std::vector<TextInput> texts = text_inputs(network);
  if (texts.empty() || network.metadata.contains(kEncodingKey)) return;
  CsvEncoding encoding;
  std::vector<std::vector<int64_t>> shapes;
  for (const TensorInfo& input : network.inputs) {
    const auto text = std::find_if(texts.begin(), texts.end(),
                                   [&](const TextInput& one) { return one.name == input.name; });
    if (!input.known_rank || input.shape.empty() ||
        std::count(input.shape.begin() + 1, input.shape.end(), kDynamic) > 0) {
      fail("input '", input.name, "' leaves its size open, beside inputs of text");
    }
    shapes.emplace_back(input.shape.begin() + 1, input.shape.end());
    int64_t count = 1;
    for (const int64_t size : shapes.back()) count *= size;
    const bool is_text = text != texts.end();
    for (std::string& name : columns_of_input(input.name, is_text ? text->columns : count)) {
      encoding.positions.push_back(encoding.columns.size());
      encoding.columns.push_back(std::move(name));
      encoding.categories.push_back(is_text ? text->categories : Names());
      // Which numbers may be missing, the network says (missing_values.h).
      encoding.means.push_back(is_text ? 0 : std::numeric_limits<float>::quiet_NaN());
    }
  }
  encoding.width = encoding.columns.size();
  network.metadata[kEncodingKey] = encoding_text(encoding);
  if (network.inputs.size() > 1) network = pack_inputs(network, layout_of(network.inputs, shapes));
}

void pack_for_rows(const DataOptions& options, Graph& network) {
  network = with_rows_first(network);
  name_text_columns(network);
  if (network.inputs.size() < 2) return;
  if (are_images(options)) {
    fail("the network has ", network.inputs.size(), " inputs; images are rows of one");
  }
  const std::string file = file_list(options.data)[0];
  const Names entries = names_of_inputs(network.inputs);
  if (holds_array(file) && !is_npz(file)) {
    fail(file, ": holds one array, the network has ", network.inputs.size(),
         " inputs; expected an .npz archive with one entry per input");
  }
  const auto shapes =
      holds_array(file) ? archive_row_shapes(file, entries) : shapes_of_columns(options, network);
  network = pack_inputs(network, layout_of(network.inputs, shapes));
}

void pack_closed_inputs(Graph& network) {
  network = with_rows_first(network);
  name_text_columns(network);
  if (network.inputs.size() < 2) return;
  std::vector<std::vector<int64_t>> shapes;
  for (const TensorInfo& input : network.inputs) {
    if (!input.known_rank || input.shape.empty() ||
        std::count(input.shape.begin() + 1, input.shape.end(), kDynamic) > 0) {
      fail("input '", input.name, "' leaves its size open, beside other inputs; use files");
    }
    shapes.emplace_back(input.shape.begin() + 1, input.shape.end());
  }
  network = pack_inputs(network, layout_of(network.inputs, shapes));
}

std::unique_ptr<RowSource> open_packed(const DataOptions& options, const Graph& network,
                                       CsvOptions csv) {
  const InputLayout layout = *layout_of(network);
  csv.exact = layout.wide();
  const std::string file = file_list(options.data)[0];
  if (!holds_array(file)) return open_columns(options.data, options.target, layout, csv);
  if (!is_npz(file)) {
    fail(file, ": holds one array, the network has ", layout.places.size(),
         " inputs; expected an .npz archive with one entry per input");
  }
  return open_archives(options, layout, csv);
}

namespace {

constexpr int64_t kChannels = 3;

bool has_channels_last(const TensorInfo& input) {
  return input.known_rank && input.shape.size() == 4 && input.shape[3] == kChannels &&
         input.shape[1] != kChannels;
}

class ImagesForInput : public ForwardedRows {
 public:
  ImagesForInput(std::unique_ptr<RowSource> source, const TensorInfo& input)
      : ForwardedRows(std::move(source)),
        last_(has_channels_last(input)),
        round_(takes_pixels(input)),
        row_shape_(ForwardedRows::row_shape()) {
    if (last_) row_shape_ = {row_shape_[1], row_shape_[2], row_shape_[0]};
  }

  bool next(size_t count, Rows& out) override {
    if (!ForwardedRows::next(count, out)) return false;
    for (float& value : out.x.values) value = round_ ? std::nearbyint(value) : value;
    if (last_) move_channels(out.x);
    return true;
  }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }

 private:
  // [n, 3, H, W] → [n, H, W, 3]
  void move_channels(Array& x) {
    const auto channels = static_cast<size_t>(kChannels);
    const size_t row = x.row_size(), plane = row / channels;
    moved_.resize(row);
    for (size_t i = 0; i < x.rows(); ++i) {
      float* const numbers = x.values.data() + i * row;
      for (size_t pixel = 0; pixel < plane; ++pixel) {
        for (size_t c = 0; c < channels; ++c) {
          moved_[pixel * channels + c] = numbers[c * plane + pixel];
        }
      }
      std::copy(moved_.begin(), moved_.end(), numbers);
    }
    x.shape = {x.shape[0], x.shape[2], x.shape[3], kChannels};
  }

  bool last_, round_;
  std::vector<int64_t> row_shape_;
  std::vector<float> moved_;
};

}  // namespace

bool takes_pixels(const TensorInfo& input) { return input.type == ElementType::kUint8; }

ImageTransform pixel_transform() {
  ImageTransform transform;
  transform.mean = {0, 0, 0};
  transform.deviation = {1.0f / 255, 1.0f / 255, 1.0f / 255};
  return transform;
}

std::unique_ptr<RowSource> images_for_input(std::unique_ptr<RowSource> rows,
                                            const TensorInfo& input) {
  if (!has_channels_last(input) && !takes_pixels(input)) return rows;
  return std::make_unique<ImagesForInput>(std::move(rows), input);
}

}  // namespace fcp

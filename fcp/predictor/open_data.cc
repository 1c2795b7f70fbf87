#include "fcp/predictor/open_data.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/columns.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/csv_head.h"
#include "fcp/data/images/image_list.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/data/npy.h"
#include "fcp/data/npy_column.h"
#include "fcp/data/number.h"
#include "fcp/data/refused_rows.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/ops/ml/text_inputs.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/input_schema.h"
#include "fcp/predictor/network_inputs.h"

namespace fcp {
namespace {

std::unique_ptr<RowSource> open_image_data(const DataOptions& options, const Graph* network) {
  ImageOptions images;
  images.transform = transform_for(options, network);
  images.list.class_file = options.class_names;
  if (options.data.ends_with(".npy")) {
    images.labels = options.target;
  } else if (!is_folder(options.data)) {
    images.list.label_column = options.target;
  }
  auto source = open_images(options.data, images);
  if (options.needs_target && source->target_count() == 0) {
    fail(options.data,
         ": has no labels; a folder needs one folder per class, a CSV a target column, an .npy a "
         "target file");
  }
  return source;
}

std::vector<std::string> numbered(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

bool are_images(const DataOptions& options) { return options.images || is_folder(options.data); }

ImageTransform transform_for(const DataOptions& options, const Graph* network) {
  if (options.transform) return *options.transform;
  const bool known = network != nullptr && network->metadata.contains(kImagesKey);
  const bool pixels =
      network != nullptr && network->inputs.size() == 1 && takes_pixels(network->inputs[0]);
  if (!known) return pixels ? pixel_transform() : ImageTransform();
  return parse_transform(network->metadata.at(kImagesKey));
}

void remember_images(const DataOptions& options, const RowSource& source, Graph& network) {
  if (are_images(options)) {
    network.metadata[kImagesKey] = transform_text(transform_for(options, &network));
  }
  if (!source.class_names().empty()) {
    network.metadata[kClassesKey] = class_names_text(source.class_names());
  } else if (!options.class_names.empty()) {
    network.metadata[kClassesKey] = class_names_text(read_lines(options.class_names));
  }
}

std::vector<std::string> class_names_of(const Graph& network, size_t classes) {
  const auto found = network.metadata.find(kClassesKey);
  if (found == network.metadata.end()) return numbered(classes);
  std::vector<std::string> names = parse_class_names(found->second);
  if (names.size() != classes) {
    fail("there are ", names.size(), " class names for ", classes, " classes");
  }
  return names;
}

std::vector<std::string> target_names_of(const Graph& network, size_t outputs) {
  const auto found = network.metadata.find(kTargetsKey);
  if (found != network.metadata.end()) {
    const auto names = nlohmann::json::parse(found->second, nullptr, false);
    if (names.is_array() && names.size() == outputs) return names.get<std::vector<std::string>>();
  }
  return numbered(outputs);
}

Refusals refuse_rows(const DataOptions& options, const CsvOptions& csv, Observer& observer) {
  Refusals found = find_refusals(file_list(options.data), options.target, csv, options.refuse,
                                 options.refused_file);
  *options.refused = found.rows;
  if (found.problems > 0) {
    observer.warning(concat(found.problems, found.problems == 1 ? " row is" : " rows are",
                            " left out (", found.first, ")",
                            options.refused_file.empty() ? "" : "; see ", options.refused_file));
  }
  if (found.without_target > 0) {
    observer.note(concat(
        found.without_target,
        found.without_target == 1 ? " row has no target and is" : " rows have no target and are",
        " left out; `fcp predict` gives regions without one"));
  }
  return found;
}

std::unique_ptr<RowSource> open_data(const DataOptions& options, const Graph* network,
                                     Observer& observer) {
  if (are_images(options)) {
    auto images = open_image_data(options, network);
    if (network == nullptr || network->inputs.size() != 1) return images;
    return with_checked_numbers(images_for_input(std::move(images), network->inputs[0]), *network,
                                MissingNumbers(*network));
  }
  if (options.needs_target && options.target.empty()) fail_option("target", "is required");
  if (network != nullptr && network->metadata.contains(kTextsKey) &&
      holds_array(file_list(options.data)[0])) {
    fail(file_list(options.data)[0],
         ": holds an array, and the network takes text; expected a CSV ",
         "file with columns called after its inputs");
  }
  CsvOptions csv = options.csv;
  if (network != nullptr && network->metadata.contains(kEncodingKey)) {
    for (const auto& [name, given] :
         {std::pair("drop", !csv.drop.empty()), std::pair("categorical", !csv.categorical.empty()),
          std::pair("impute", csv.impute), std::pair("schema", !csv.types.empty())}) {
      if (given) fail_option(name, "was settled when this network was trained; leave it out");
    }
    csv.encoding = parse_encoding(network->metadata.at(kEncodingKey));
  }
  std::shared_ptr<const MissingNumbers> missing = options.missing;
  if (network != nullptr && !missing) missing = std::make_shared<const MissingNumbers>(*network);
  csv.missing_as_nan = missing && missing->any() && !csv.impute;
  if (options.refused && !holds_array(file_list(options.data)[0])) {
    refuse_rows(options, csv, observer);
    csv.refused = options.refused;
  }
  const bool offset = network != nullptr && network->metadata.contains(kTargetOffsetKey);
  csv.exact = csv.exact || offset || (network != nullptr && wants_exact(*network));
  auto source = network != nullptr && is_packed(*network)
                    ? open_packed(options, *network, csv)
                    : open_rows(options.data, options.target, csv);
  for (const std::string& note : source->notes()) observer.note(note);
  if (network == nullptr) return source;
  return with_checked_numbers(std::move(source), *network, *missing);
}

std::string data_file_names(const DataOptions& options) {
  std::string names;
  for (const std::string& file : file_list(options.data)) {
    if (!names.empty()) names += ',';
    names += std::filesystem::path(file).filename().string();
  }
  return names;
}

torch::Tensor view(const Array& array) {
  if (!array.exact.empty()) {
    return torch::from_blob(const_cast<double*>(array.exact.data()), array.shape, torch::kDouble);
  }
  return torch::from_blob(const_cast<float*>(array.values.data()), array.shape, torch::kFloat);
}

namespace {

// Of all files of the data, one after the other.
std::vector<std::string> read_column(const DataOptions& data, const std::string& name) {
  std::vector<std::string> cells;
  for (const std::string& file : file_list(data.data)) {
    for (std::string& cell : read_csv_column(file, name, data.csv)) {
      cells.push_back(std::move(cell));
    }
  }
  return cells;
}

RowGroups read_groups(const DataOptions& data, const std::string& group,
                      const std::vector<std::string>& known_names) {
  RowGroups groups;
  groups.names = known_names;
  if (group.empty()) return groups;
  std::map<std::string, int64_t> known;
  for (const std::string& name : known_names) {
    known.emplace(name, static_cast<int64_t>(known.size()));
  }
  const auto add = [&](const std::string& name) {
    const auto [entry, fresh] = known.emplace(name, static_cast<int64_t>(known.size()));
    if (fresh) groups.names.push_back(name);
    groups.ids.push_back(entry->second);
  };
  if (group.ends_with(".npy")) {
    for (const std::string& name : read_npy_column(group)) add(name);
  } else {
    for (const std::string& cell : read_column(data, group)) add(cell);
  }
  return groups;
}

double parse_weight(const std::string& cell, const std::string& column, size_t row) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !(value >= 0) ||
      std::isinf(value)) {
    fail("weights ", column, ": row ", row, " (from 0) is '", cell,
         "', expected a finite number, not negative");
  }
  return value;
}

std::string plain_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::vector<double> read_weights(const DataOptions& data, const std::string& weights) {
  std::vector<double> values;
  if (weights.empty()) return values;
  if (weights.ends_with(".npy")) {
    for (const float value : read_npy(weights).values) {
      if (!(value >= 0) || std::isinf(value)) {
        fail(plain_name(weights), ": row ", values.size(), " (from 0) is ", value,
             ", expected a finite number, not negative");
      }
      values.push_back(value);
    }
    return values;
  }
  for (const std::string& cell : read_column(data, weights)) {
    values.push_back(parse_weight(cell, weights, values.size()));
  }
  return values;
}

}  // namespace

RowFacts read_facts(const DataOptions& data, const FactOptions& options) {
  const RowGroups groups = read_groups(data, options.group, {});
  return {groups, groups, read_weights(data, options.weights)};
}

std::optional<std::vector<double>> read_number_column(const DataOptions& data,
                                                      const std::string& name) {
  const std::vector<std::string> files = file_list(data.data);
  if (are_images(data) || holds_array(files[0])) return std::nullopt;
  CsvRecords records(open_text(files[0], data.csv.text_encoding), data.csv.separator);
  if (!read_head(records, data.csv.header).has(name)) return std::nullopt;
  std::vector<double> numbers;
  for (const std::string& cell : read_column(data, name)) {
    double value = 0;
    if (!parse_number(cell, value) || !std::isfinite(value)) {
      fail(data.data, ": row ", numbers.size(), " (from 0), column '", name, "': found '", cell,
           "', expected a finite number");
    }
    numbers.push_back(value);
  }
  return numbers;
}

RowFacts read_facts_for(const CalibrationArtifact& artifact, const DataOptions& data,
                        const FactOptions& options, Observer& observer) {
  const CalibrationOptions& calibration = artifact.method.calibration;
  const std::string column = calibration.group_column();
  const bool by_column = !column.empty();
  const bool in_table = !column.ends_with(".npy") && !data.data.ends_with(".npy");
  const std::string group = !by_column ? "" : in_table ? column : options.group;
  if (by_column && group.empty()) {
    fail_option("group", internal::kNeedsGroups, ", in an .npy file");
  }
  if (calibration.traits().by_weight && !artifact.ratio.defined() && options.weights.empty()) {
    fail_option("weights", internal::kNeedsWeights);
  }
  const std::vector<std::string>& known = artifact.rows.group_names;
  RowFacts facts;
  if (by_column) facts.groups = read_groups(data, group, known);
  facts.shown = options.group.empty() || options.group == group
                    ? facts.groups
                    : read_groups(data, options.group, {});
  facts.weights = read_weights(data, options.weights);
  if (by_column && facts.groups.names.size() > known.size()) {
    std::string unknown;
    for (size_t i = known.size(); i < facts.groups.names.size(); ++i) {
      unknown += concat(i == known.size() ? "'" : ", '", facts.groups.names[i], "'");
    }
    observer.warning(
        concat("calibration has not seen the group ", unknown, ": its regions are infinite"));
  }
  return facts;
}

SideInformation side_information(const RowFacts& facts, size_t known_groups, size_t first,
                                 size_t count) {
  SideInformation given;
  given.first = first;
  for (const int64_t id : groups_of(facts.groups, first, count)) {
    given.groups.push_back(id < static_cast<int64_t>(known_groups) ? id : -1);
  }
  if (!facts.weights.empty()) {
    if (facts.weights.size() < first + count) {
      fail("weights: ", facts.weights.size(), " rows, the data has more");
    }
    given.weights.assign(facts.weights.begin() + static_cast<std::ptrdiff_t>(first),
                         facts.weights.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  return given;
}

std::span<const int64_t> groups_of(const RowGroups& groups, size_t first, size_t count) {
  if (groups.ids.empty()) return {};
  if (groups.ids.size() < first + count) {
    fail("group: names ", groups.ids.size(), " rows, the data has more");
  }
  return std::span(groups.ids).subspan(first, count);
}

void check_facts(const RowFacts& facts, size_t rows) {
  for (const RowGroups* groups : {&facts.groups, &facts.shown}) {
    if (groups->ids.size() > rows) {
      fail("group: names ", groups->ids.size(), " rows, the data has ", rows);
    }
  }
  if (facts.weights.size() > rows) {
    fail("weights: ", facts.weights.size(), " rows, the data has ", rows);
  }
}

}  // namespace fcp

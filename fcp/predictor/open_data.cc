#include "fcp/predictor/open_data.h"

#include <filesystem>

#include <nlohmann/json.hpp>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/data/encoding_text.h"
#include "fcp/data/images/folder.h"
#include "fcp/data/images/image_rows.h"
#include "fcp/data/images/image_text.h"
#include "fcp/data/refused_rows.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/ops/ml/text_inputs.h"
#include "fcp/predictor/image_inputs.h"
#include "fcp/predictor/input_numbers.h"
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

}  // namespace fcp

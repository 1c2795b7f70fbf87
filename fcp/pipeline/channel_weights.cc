#include "fcp/pipeline/channel_weights.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/data/csv_column.h"
#include "fcp/data/number.h"
#include "fcp/images/segmentation_target.h"

namespace fcp {
namespace {

// Of all classes; those of the channels are the last of them.
std::vector<double> of_channels(std::vector<double> weights, const SegmentTask& task) {
  weights.erase(weights.begin(), weights.begin() + task.first);
  return weights;
}

}  // namespace

std::vector<double> channel_weights(const SegmentationSet& set, const SegmentTask& task,
                                    const Context& context) {
  std::vector<uint64_t> counts(static_cast<size_t>(task.classes), 0);
  Stage stage(context, "labels", set.pairs.size());
  for (size_t i = 0; i < set.pairs.size(); ++i) {
    check_interrupted();
    count_labels(read_segmentation(set, i, task.transform.size).labels, counts);
    stage.advance(1);
  }
  return of_channels(loss_weights(counts), task);
}

std::vector<double> read_channel_weights(const std::string& csv, const SegmentTask& task) {
  const CsvOptions header{.header = CsvHeader::kYes};
  const std::vector<std::string> classes = read_csv_column(csv, "class", header);
  const std::vector<std::string> values = read_csv_column(csv, "loss_weight", header);
  std::vector<double> weights(static_cast<size_t>(task.classes), std::nan(""));
  for (size_t i = 0; i < classes.size(); ++i) {
    double number = -1, weight = -1;
    const bool good = parse_number(classes[i], number) && parse_number(values[i], weight) &&
                      number >= 0 && number < task.classes && weight >= 0;
    if (!good) {
      fail(csv, ": row ", i + 1, ": found class ", classes[i], " with weight ", values[i],
           ", expected classes 0 to ", task.classes - 1, " and weights of at least 0");
    }
    weights[static_cast<size_t>(number)] = weight;
  }
  weights = of_channels(std::move(weights), task);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isnan(weights[i])) {
      fail(csv, ": no weight of class ", i + static_cast<size_t>(task.first));
    }
  }
  return weights;
}

}  // namespace fcp

#include "fcp/training/training_data.h"

#include <algorithm>
#include <cmath>

#include "fcp/base/error.h"
#include "fcp/data/scaling.h"

namespace fcp {
namespace {

void check_shapes(const Array& x, const Array& y) {
  if (x.shape.size() != 2 || x.row_size() == 0) {
    fail("cannot train on features of shape ", shape_text(x.shape), ", expected [rows, columns]");
  }
  if (y.shape.empty() || y.shape.size() > 2 || y.row_size() == 0) {
    fail("cannot train on targets of shape ", shape_text(y.shape), ", expected [rows, outputs]");
  }
  if (x.rows() != y.rows()) {
    fail("found ", x.rows(), " rows of features and ", y.rows(), " of targets, expected as many");
  }
  if (x.rows() < kFewestTrainingRows) {
    fail("found ", x.rows(), " rows to train on, expected at least ", kFewestTrainingRows);
  }
}

void check_finite(const Array& array, const char* what, bool missing) {
  const size_t columns = array.row_size();
  for (size_t i = 0; i < array.values.size(); ++i) {
    if (std::isfinite(array.values[i]) || (missing && std::isnan(array.values[i]))) continue;
    fail(what, " of row ", i / columns, ", column ", i % columns, " (from 0) is ", array.values[i],
         ", expected a finite number");
  }
}

// A label must be exact as a float and small enough that a class for each one below it is sane.
void check_labels(const Array& y) {
  constexpr float kLargestLabel = 1 << 20;
  if (y.row_size() != 1) {
    fail("found ", y.row_size(),
         " target columns, expected one column of labels for cross-entropy");
  }
  for (size_t i = 0; i < y.values.size(); ++i) {
    const float label = y.values[i];
    if (label >= 0 && label <= kLargestLabel && label == std::floor(label)) continue;
    fail("label of row ", i, " (from 0) is ", label, ", expected a whole number from 0");
  }
}

void check_varies(const Array& y) {
  const size_t columns = y.row_size();
  for (size_t i = columns; i < y.values.size(); ++i) {
    if (y.values[i] != y.values[i % columns]) return;
  }
  fail("the target is ", y.values[0], " in all ", y.rows(), " rows: there is nothing to learn");
}

NetworkScaling fit_scaling(const Array& x, const Array& y, bool scale_target) {
  const Standardiser standardiser = fit_standardiser(x);
  NetworkScaling scaling;
  for (size_t j = 0; j < standardiser.mean.size(); ++j) {
    const float deviation = static_cast<float>(standardiser.deviation[j]);
    scaling.mean.push_back(static_cast<float>(standardiser.mean[j]));
    scaling.deviation.push_back(deviation > 0 ? deviation : 1.0f);  // 1 where float32 underflows
  }
  if (scale_target) scaling.target = static_cast<float>(target_scale(y));
  if (!(scaling.target > 0)) fail("the target's mean size, ", target_scale(y), ", is too small");
  return scaling;
}

void apply_scaling(const NetworkScaling& scaling, TrainingData& data) {
  const size_t columns = scaling.mean.size();
  for (size_t i = 0; i < data.x.size(); ++i) {
    const size_t j = i % columns;
    data.x[i] = (data.x[i] - scaling.mean[j]) / scaling.deviation[j];
    if (!std::isfinite(data.x[i])) {
      fail("feature of row ", i / columns, ", column ", j, " (from 0) is too large for float32");
    }
  }
  for (float& value : data.y) value /= scaling.target;
}

}  // namespace

void check_training_rows(const Array& x, const Array& y, Loss loss, bool missing, bool constant) {
  check_shapes(x, y);
  check_finite(x, "feature", missing);
  check_finite(y, "target", /*missing=*/false);
  if (loss == Loss::kCrossEntropy) check_labels(y);
  if (!constant) check_varies(y);
}

int64_t count_classes(std::span<const float> labels, int64_t asked) {
  const auto largest = std::max_element(labels.begin(), labels.end());
  const int64_t needed = static_cast<int64_t>(*largest) + 1;
  if (asked == 0) return needed;
  if (asked < needed) {
    fail("label of row ", largest - labels.begin(), " (from 0) is ", *largest, ", expected below ",
         asked, ", the number of classes");
  }
  return asked;
}

void check_loss_weights(std::span<const double> weights, int64_t expected, const char* what) {
  if (weights.empty()) return;
  if (static_cast<int64_t>(weights.size()) != expected) {
    fail("found ", weights.size(), " weights of the loss, expected ", expected, ", one per ", what);
  }
  for (const double weight : weights) {
    if (!(weight > 0 && std::isfinite(weight))) {
      fail("a weight of the loss is ", weight, ", expected a number above 0");
    }
  }
}

TrainingData prepare_training_data(const Array& x, const Array& y, Loss loss, bool scale) {
  check_training_rows(x, y, loss, /*missing=*/false);
  const bool labels = loss == Loss::kCrossEntropy;
  TrainingData data{.rows = static_cast<int64_t>(x.rows()),
                    .inputs = static_cast<int64_t>(x.row_size()),
                    .targets = static_cast<int64_t>(y.row_size()),
                    .x = x.values,
                    .y = y.values,
                    .scaling = {}};
  if (scale) {
    data.scaling = fit_scaling(x, y, !labels);
    apply_scaling(data.scaling, data);
  }
  return data;
}

}  // namespace fcp

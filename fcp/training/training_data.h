// The rows a network is trained on, checked and brought to the scale it trains at.
// Tested by tests/training/training_data_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fcp/data/array.h"
#include "fcp/training/loss.h"

namespace fcp {

// What a network does around its layers: scaled = (input − mean) / deviation before the first, and
// prediction = output · target after the last, in float32 both in training and in the exported
// file. Empty vectors: the network takes and gives numbers as they are.
struct NetworkScaling {
  std::vector<float> mean;
  std::vector<float> deviation;
  float target = 1;

  bool empty() const { return mean.empty(); }
};

struct TrainingData {
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t targets = 0;   // columns of y
  std::vector<float> x;  // [rows, inputs], scaled
  std::vector<float> y;  // [rows, targets], scaled; labels are not
  NetworkScaling scaling;
};

constexpr size_t kFewestTrainingRows = 10;

// x is [N, inputs]; y [N, K] or [N]. Labels, for cross-entropy, are whole numbers from 0 in one
// column. Rows and columns in messages count from 0.
TrainingData prepare_training_data(const Array& x, const Array& y, Loss loss, bool scale);

// The checks alone. Where `missing` is true, features may be NaN; where `constant` is, the target
// need not vary.
void check_training_rows(const Array& x, const Array& y, Loss loss, bool missing,
                         bool constant = false);

// The number of classes: `asked`, or where that is 0 the largest label + 1. An Error where a label
// is not below it.
int64_t count_classes(std::span<const float> labels, int64_t asked);

// Weights of the loss: none, or `expected` of them, all above 0; `what` each is of, for messages.
void check_loss_weights(std::span<const double> weights, int64_t expected, const char* what);

}  // namespace fcp

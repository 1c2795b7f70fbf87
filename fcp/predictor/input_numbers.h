// Numbers on their way to a network's inputs. Integers and doubles keep all their digits, and what
// is not a number of the input's type is an Error instead of a wrong answer. NaN, a missing value,
// is one where the network would compute with it (missing_values.h).
//
// Tested by tests/predictor/network_inputs_test.cc, tests/python/test_inputs.py.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// Whether an input's numbers are kept as doubles.
bool wants_exact(const Graph& network);

// An Error where a number is not one of the type of the input that gets it: a fraction, or beyond
// its range, or beyond what is exact in x. `place` says where a row of x stands.
void check_input_numbers(const torch::Tensor& x, const Graph& network,
                         const std::function<std::string(int64_t)>& place,
                         const std::vector<std::string>& column_names = {});

// Which numbers of a network's rows may be missing. Any number of threads may ask.
class MissingNumbers {
 public:
  // Of the network's first input, or of the one of this name.
  explicit MissingNumbers(const Graph& network, const std::string& input = "");

  // Whether any may be.
  bool any() const { return all_ || network_ != nullptr; }
  // For each number of a row of this shape.
  std::vector<bool> columns(const std::vector<int64_t>& row_shape) const;

  struct Place {
    int64_t row, column;
  };
  // The first NaN of x [N, …] that may not be there.
  std::optional<Place> find_refused(const torch::Tensor& x) const;

 private:
  bool all_ = false;                      // the network was trained on a table with missing values
  std::shared_ptr<const Graph> network_;  // null: none may be missing, or all may
  std::string input_;
  struct Known {
    std::mutex mutex;
    std::optional<std::vector<int64_t>> row_shape;
    std::vector<bool> columns;
  };
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

// Both checks of all rows of a source, as they are read.
std::unique_ptr<RowSource> with_checked_numbers(std::unique_ptr<RowSource> rows,
                                                const Graph& network,
                                                const MissingNumbers& missing);

}  // namespace fcp

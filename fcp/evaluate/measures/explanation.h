// Which columns a prediction and the length of its region depend on; plain numbers
// (fcp/evaluate/explain.h makes them). What is said of the length of an interval is said of the
// size of a set of labels too.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fcp {

struct ColumnImportance {
  std::string column;
  double prediction = 0;  // intervals: root mean squared change of the prediction where the column
                          // is shuffled; labels: share of rows whose answer changes
  double length = 0;      // mean change of the region's length, without sign
};

struct WidenedRow {
  struct Reason {
    std::string column;
    double by = 0;  // length less that where the column has its mean: above 0, it widens the region
  };
  std::string name;  // "line 7", "row 5"
  double length = 0;
  std::vector<Reason> reasons;  // the largest first
};

struct Explanation {
  size_t rows = 0;
  bool labels = false;
  bool scaled = false;    // several outputs: changes are in standard deviations of each
  bool training = false;  // means are those of the training rows; else of the rows at hand
  double mean_length = 0;
  std::string level;                      // α
  std::vector<ColumnImportance> columns;  // by the change of the prediction, the largest first
  std::vector<WidenedRow> widest;         // the rows with the longest regions
};

}  // namespace fcp

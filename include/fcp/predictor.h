// A calibrated predictor: rows in; point predictions, intervals or label sets, and p-values out.
//
//   const auto p = fcp::Predictor::load("calibrated.onnx");
//   const std::vector<fcp::Record> rows = {{{"distance_km", "3.2"}, {"city", "Ulm"}}};
//   const fcp::Answer a = p.predict(p.schema().encode(rows), {fcp::Level(0.05), fcp::Level(0.1)});
//   use(a.point(0), a.interval(0, 0, 1).lower, a.interval(0, 0, 1).upper);
//
// A schema turns rows, in whatever form they come, into a Batch; a Predictor turns a Batch into an
// Answer. All four classes are values: immutable, cheap to copy (copies share memory) and safe to
// use from any number of threads at once, without locks. They own what they hold; what they are
// given need not outlive the call.
//
// Errors: every function may throw fcp::Error, with one line that names the row (from 0), column
// or file, what was found and what was expected. Nothing else is thrown for bad input.
//
// Tested by tests/predictor/predictor_test.cc and input_schema_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fcp/error.h"
#include "fcp/interval.h"
#include "fcp/level.h"

namespace fcp {

namespace internal {
struct Access;
struct BatchData;
struct AnswerData;
class SchemaData;
class PredictorCore;
}  // namespace internal

// One row of a table as it stands in a file: the text of each column by its name. A column that is
// absent or empty is a missing value; columns that the network does not know are ignored.
using Record = std::map<std::string, std::string>;

// All rows of one input of the network, [N, …], or of one column of its table, [N]; numbers or
// texts, row by row. Without a shape, [N] is meant.
struct NamedValues {
  std::string name;
  std::variant<std::vector<double>, std::vector<std::string>> values;
  std::vector<int64_t> shape = {};
};

// What is known of rows besides their inputs: one entry per row, or none.
struct RowInfo {
  std::vector<std::string> groups = {};  // grouped by a column: the group of each row
  std::vector<double> weights = {};      // weighted by given likelihood ratios: those of the rows
  // Localized calibration draws at random by the place of a row. Rows without places are numbered
  // in the order in which the predictor answers them, so that no draw is used twice; a row that is
  // to be judged by the interval it was given must be judged at the same place.
  std::vector<uint64_t> places = {};
};

// N rows ready to run.
class Batch {
 public:
  size_t rows() const;
  // Of each row that came as cells of a table that fcp trained on, what no training row had and the
  // guarantee does not extend to, as `fcp predict --flags` writes it: "missing:COLUMN",
  // "unseen:COLUMN" (a category) and "range:COLUMN" (far outside), with '|' between. Rows of
  // numbers have no flags.
  const std::vector<std::string>& flags() const;

 private:
  friend struct internal::Access;
  explicit Batch(std::shared_ptr<const internal::BatchData> data) : data_(std::move(data)) {}
  std::shared_ptr<const internal::BatchData> data_;
};

// What a row of a predictor is.
class InputSchema {
 public:
  struct Input {
    std::string name;
    std::string type;            // "float32", "int64", "string", …
    std::vector<int64_t> shape;  // of one row; −1 where the network leaves a size open
  };

  // The network's inputs, in its order.
  const std::vector<Input>& inputs() const;
  // Numbers in a row of all inputs together. REQUIRES: no input leaves a size open.
  size_t row_size() const;
  // The columns of a Record, where the network was trained on a table or takes text; else empty.
  const std::vector<std::string>& columns() const;
  // Whether each number of a row may be NaN, a missing value. REQUIRES: as row_size.
  std::vector<bool> may_be_missing() const;

  // The column by which calibration was grouped; empty: it was not. Its regions need
  // RowInfo::groups, or Records and values that hold this column. A group that calibration has not
  // seen gets infinite intervals, or sets of all labels.
  const std::string& group_column() const;
  // The groups with a radius of their own.
  const std::vector<std::string>& groups() const;
  // Whether regions need RowInfo::weights.
  bool needs_weights() const;

  // Rows as records of texts. REQUIRES: columns() is not empty.
  Batch encode(std::span<const Record> rows, const RowInfo& info = {}) const;
  // Rows as numbers, row by row; x.size() is a multiple of row_size(). Inputs stand side by side.
  Batch encode(std::span<const float> x, const RowInfo& info = {}) const;
  // Rows by name: all of the network's inputs, or all columns of its table; one that is absent or
  // unknown is an Error. Integers and doubles reach an input of their type with all digits. Groups
  // and weights may come as values too, called as group_column() or "groups", and "weights".
  Batch encode(std::span<const NamedValues> values, const RowInfo& info = {}) const;

 private:
  friend struct internal::Access;
  explicit InputSchema(std::shared_ptr<const internal::SchemaData> data) : data_(std::move(data)) {}
  std::shared_ptr<const internal::SchemaData> data_;
};

// The answers for N rows: the point predictions, and the regions at each of the levels that were
// asked for, in their order. `level` is a place in that order.
//
// REQUIRES of all accessors: row < rows(), output < outputs(), level < levels().size(). This is
// checked: a place that is out of range is a std::out_of_range.
class Answer {
 public:
  size_t rows() const;
  const std::vector<Level>& levels() const;
  size_t outputs() const;  // intervals per row; 1 for labels
  size_t classes() const;  // labels to choose from; 0: intervals
  size_t pixels() const;   // sets per row, of a network that labels pixels; else 1

  // What the network itself predicts: a number, or a label as a number.
  double point(size_t row, size_t output = 0) const;
  // Of all rows, [rows × outputs], row by row.
  std::span<const double> points() const;

  // Intervals. An Error where the answers are label sets.
  Interval interval(size_t row, size_t output = 0, size_t level = 0) const;
  // The intervals of a union, ascending (score density with level sets); elsewhere the one
  // interval.
  std::vector<Interval> parts(size_t row, size_t output = 0, size_t level = 0) const;
  // The ends of all rows, [rows × outputs], row by row.
  std::span<const double> lower(size_t level = 0) const;
  std::span<const double> upper(size_t level = 0) const;

  // Label sets. An Error where the answers are intervals. `pixel`: of pixels().
  std::vector<size_t> labels(size_t row, size_t level = 0, size_t pixel = 0) const;
  bool in_set(size_t row, size_t label, size_t level = 0, size_t pixel = 0) const;

 private:
  friend struct internal::Access;
  explicit Answer(std::shared_ptr<const internal::AnswerData> data) : data_(std::move(data)) {}
  std::shared_ptr<const internal::AnswerData> data_;
};

// How unusual the truths of N rows are.
struct Judgement {
  size_t sides = 1;            // scores per row
  size_t targets = 1;          // T: outputs() where each has a radius of its own (joint each)
  std::vector<double> scores;  // [N × sides], row by row
  // [N × T]: small p-values are unusual truths. A truth is in the region at level α exactly where
  // its p-value is above α. Empty where the calibration keeps the radii of some levels alone.
  std::vector<double> p_values;
  // By level, [N × T]: whether the truth is in the region, of several outputs in that of all; with
  // a radius for each output, whether that output's is in its own.
  std::vector<std::vector<bool>> in;
};

class Predictor {
 public:
  // Reads what save, `fcp calibrate`, `fcp fit` or Python wrote. device: "cpu" or "cuda".
  static Predictor load(const std::string& path, const std::string& device = "cpu");
  // Atomic: an existing file is replaced whole or not at all.
  void save(const std::string& path) const;

  const InputSchema& schema() const;

  // One run of the network for all levels. Without levels: the point predictions alone, for which
  // no groups or weights are needed. An Error names a row whose answer is NaN; another where the
  // calibration keeps the radii of some levels alone and `levels` has others.
  //
  // REQUIRES: the batch was encoded by the schema of this predictor.
  Answer predict(const Batch& batch, const std::vector<Level>& levels) const;

  // The truths of the rows: outputs() numbers, or one label, per row. An Error names a row whose
  // truth is NaN or no label.
  Judgement judge(const Batch& batch, std::span<const float> truth,
                  const std::vector<Level>& levels = {}) const;
  // The p-values alone; an Error where the calibration keeps the radii of some levels alone.
  std::vector<double> p_values(const Batch& batch, std::span<const float> truth) const;

  size_t outputs() const;                           // intervals per row; 1 for labels
  const std::vector<std::string>& classes() const;  // names of the labels; empty: intervals
  bool predicts_labels() const { return !classes().empty(); }
  size_t calibration_rows() const;
  const std::vector<Level>& kept_levels() const;  // levels that can be asked for; empty: all

  // How the predictor was calibrated, as text by the names of the option table: "score",
  // "calibration", "group", …; `fcp calibrate --help` lists them. "cut" is the tensor that is the
  // feature; empty: the network's input.
  const std::map<std::string, std::string>& method() const;
  // One option of it; empty where there is none of this name.
  std::string method(const std::string& option) const;

  // The radius at a level, one per side (or output and side); empty where it differs by row.
  std::vector<double> radius(const Level& level) const;
  // What a user of regions at this level should know, a line each: most regions may miss the truth;
  // the radius is infinite, or too large for single precision. Mostly empty.
  std::vector<std::string> warnings(const Level& level) const;
  // What a reader of a report wants to know: files, hashes, options, versions.
  const std::map<std::string, std::string>& provenance() const;

 private:
  friend struct internal::Access;
  explicit Predictor(std::shared_ptr<const internal::PredictorCore> core)
      : core_(std::move(core)) {}
  std::shared_ptr<const internal::PredictorCore> core_;
};

}  // namespace fcp

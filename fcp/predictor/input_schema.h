// What stands behind the public InputSchema: how rows of a network are encoded, and what the
// calibration needs to know of them besides. All checks of rows in memory, and their messages, are
// here; rows of files are checked where they are read (input_numbers.h).
//
// Tested by tests/predictor/input_schema_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/columns.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/input_numbers.h"

namespace fcp::internal {

// What is said where regions need more than the rows themselves.
inline constexpr char kNeedsGroups[] =
    "the predictor was calibrated by group: give the group of each row";
inline constexpr char kNeedsWeights[] =
    "the predictor was calibrated with given likelihood ratios: give that of each row";

// An Error where there is not one group, or weight, per row where they are needed, or there are
// some where they are not, or a weight is none.
void check_info(const RowInfo& info, size_t rows, bool needs_groups, bool needs_weights);

class SchemaData {
 public:
  explicit SchemaData(const CalibrationArtifact& artifact);
  // Of a network without a calibration.
  explicit SchemaData(const Graph& network);

  const std::vector<InputSchema::Input>& inputs() const { return inputs_; }
  const std::vector<std::string>& columns() const { return columns_; }
  const std::string& group_column() const { return group_column_; }
  const std::vector<std::string>& groups() const { return groups_; }
  bool needs_weights() const { return needs_weights_; }
  const std::optional<CsvEncoding>& encoding() const { return encoding_; }

  // Why rows have no shape of their own: a size that the network leaves open. Empty: they have.
  const std::string& open_reason() const { return open_reason_; }
  // Of one row of x; an Error with that reason where it is not known.
  const std::vector<int64_t>& row_shape() const;
  size_t row_size() const;
  std::vector<bool> may_be_missing() const { return missing_.columns(row_shape()); }

  BatchData encode(std::span<const Record> rows, const RowInfo& info) const;
  BatchData encode(std::span<const float> x, const RowInfo& info) const;
  BatchData encode(std::span<const NamedValues> values, const RowInfo& info) const;
  BatchData encode(const torch::Tensor& x, const RowInfo& info) const;

  // Rows of numbers as the network takes them: float32, or double where that is not enough. An
  // Error where one is missing that may not be, or is not of its input's type.
  torch::Tensor checked(const torch::Tensor& rows, const RowNames& row_name) const;

  // The number by which the calibration knows a group; −1: it does not.
  int64_t group_number(const std::string& name) const;

  // An Error where regions need groups or weights that the batch does not have.
  void check_known(const BatchData& batch) const;

 private:
  BatchData batch_of_rows(torch::Tensor x, const RowInfo& info) const;
  BatchData batch_of_columns(const std::vector<ColumnCells>& cells, const ColumnCells& groups,
                             size_t rows, const RowInfo& info) const;
  void add_groups(const ColumnCells& cells, BatchData& batch) const;
  bool names_inputs(std::span<const NamedValues> values) const;
  std::optional<std::vector<NamedValues>> take_info(std::span<const NamedValues> values,
                                                    RowInfo& info) const;
  torch::Tensor inputs_side_by_side(std::span<const NamedValues> values) const;
  void check_columns(std::span<const NamedValues> values) const;
  torch::ScalarType row_type() const { return exact_ ? torch::kDouble : torch::kFloat; }

  Graph network_;  // its inputs and metadata alone
  MissingNumbers missing_;
  InputLayout layout_;  // of inputs whose sizes are known
  bool exact_ = false;  // rows are double
  std::string open_reason_;
  std::vector<int64_t> row_shape_;
  std::vector<InputSchema::Input> inputs_;
  std::optional<CsvEncoding> encoding_;
  std::vector<std::string> columns_;
  std::string group_column_;
  std::vector<std::string> groups_;
  bool needs_weights_ = false;
};

}  // namespace fcp::internal

// What a user says of rows besides x and y: the group each belongs to, and its likelihood ratio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fcp/predictor/batch.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

// The group of each row, in the order of the data, with the groups' names. Empty: no groups.
struct RowGroups {
  std::vector<int64_t> ids;
  std::vector<std::string> names;
};

struct RowFacts {
  RowGroups groups;             // by which rows are calibrated
  RowGroups shown;              // by which `evaluate` shows coverage; mostly the same
  std::vector<double> weights;  // empty: none
};

// The options group and weights; each is empty, a CSV column by name or index, or an .npy file.
struct FactOptions {
  std::string group;
  std::string weights;
};

RowFacts read_facts(const DataOptions& data, const FactOptions& options);

// The facts that a calibrated predictor needs of new rows: where it was calibrated by a column,
// that column without being asked. The groups carry the numbers that the predictor knows them by,
// with names that it does not know after them. Says which groups are unknown.
RowFacts read_facts_for(const CalibrationArtifact& artifact, const DataOptions& data,
                        const FactOptions& options, Observer& observer);

// The facts of `count` rows from `first` on; groups the predictor has not seen become −1.
SideInformation side_information(const RowFacts& facts, size_t known_groups, size_t first,
                                 size_t count);

// The groups of these rows; empty where there are none.
std::span<const int64_t> groups_of(const RowGroups& groups, size_t first, size_t count);

// The numbers of a CSV column by name, one per row; nothing where the data is no table or has no
// such column. An Error names the row of a cell that is no finite number.
std::optional<std::vector<double>> read_number_column(const DataOptions& data,
                                                      const std::string& name);

// An Error where facts speak of more rows than the data has.
void check_facts(const RowFacts& facts, size_t rows);

}  // namespace fcp

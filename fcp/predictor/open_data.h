// Opening the rows of a table, array or folder of images the way a network wants them: through the
// encoding of columns and the transform of images that it carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/refused_rows.h"
#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/context.h"

namespace fcp {

class MissingNumbers;
struct CalibrationArtifact;

struct DataOptions {
  std::string data;           // CSV, .npy, .npz:entry or a folder of images; several: a,b. An
                              // .npz where the network has several inputs (network_inputs.h)
  std::string target;         // CSV columns, or .npy files; folders of images name it themselves
  bool needs_target = false;  // an Error where there is none
  CsvOptions csv = {};
  bool images = false;                           // a CSV or .npy holds images; a folder always does
  std::optional<ImageTransform> transform = {};  // none: the network's own, or the usual one
  std::string class_names = {};                  // file of class names, one per line
  // CSV rows to pass over; open_data finds them and keeps them in `refused`, which csv.refused must
  // share so that groups and weights are of the same rows.
  RefusalRule refuse = {};
  std::string refused_file = {};  // gets the rows with problems; empty: no file
  std::shared_ptr<RefusedRows> refused = {};
  // Which numbers of the rows may be missing; null: as the network says.
  std::shared_ptr<const MissingNumbers> missing = {};
};

// `network` supplies the encoding of columns that training stored in it, if any; null: none. The
// observer hears which columns and rows are left out.
std::unique_ptr<RowSource> open_data(const DataOptions& options, const Graph* network,
                                     Observer& observer = *silent_observer());

// Finds the CSV rows that options.refuse passes over, keeps them in options.refused, writes the
// file of them, and tells the observer.
Refusals refuse_rows(const DataOptions& options, const CsvOptions& csv, Observer& observer);

bool are_images(const DataOptions& options);

// How images are read for this network.
ImageTransform transform_for(const DataOptions& options, const Graph* network);

// Keeps in the network how images were read and what the classes are called.
void remember_images(const DataOptions& options, const RowSource& source, Graph& network);

// The names of the classes that the network carries; numbers where it has none.
std::vector<std::string> class_names_of(const Graph& network, size_t classes);

// The names of the target columns that the network carries; numbers where it has none.
std::vector<std::string> target_names_of(const Graph& network, size_t outputs);

// The names of the files of the data, without their folders.
std::string data_file_names(const DataOptions& options);

// The array without a copy, in doubles where it has them; it must outlive the tensor.
torch::Tensor view(const Array& array);

// What a user says of rows besides x and y: the group each belongs to, and its likelihood ratio.

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

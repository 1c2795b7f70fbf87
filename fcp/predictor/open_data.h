// Opening the rows of a table, array or folder of images the way a network wants them: through the
// encoding of columns and the transform of images that it carries.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/refused_rows.h"
#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/context.h"

namespace fcp {

class MissingNumbers;

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

}  // namespace fcp

// Files of regions: CSV and .npy for rows, pictures and .npy for images of pixels.
// Tested by tests/cli/test_levels.py, test_fit.py and test_segment.py.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fcp/data/rows.h"
#include "fcp/level.h"
#include "fcp/methods/scores/score.h"
#include "fcp/predictor/artifact.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

// Where the regions of rows go, batch by batch. A writer owns its files. A file is whole after
// close(); of a writer that is not closed none is left behind, but for the pictures of a folder.
class RegionWriter {
 public:
  virtual ~RegionWriter() = default;

  // The regions of these rows at each level, in the order of the levels. `more`: the numbers of the
  // columns that are added, [N, columns], where the file has any: probabilities of the classes, or
  // what distributions say.
  virtual void append(const Rows& rows, std::span<const Regions> levels,
                      const torch::Tensor& more) = 0;
  void append(const Rows& rows, std::span<const Regions> levels) { append(rows, levels, {}); }
  virtual void close() = 0;
};

// Columns of the data that are written beside its regions: names and identifiers.
struct KeptColumns {
  std::vector<std::string> names{};
  std::vector<std::vector<std::string>> cells{};  // of each column, one per row
};

// `list`: columns of a CSV file by name or index, with commas between, or `all`; empty for none.
KeptColumns read_kept_columns(const DataOptions& data, const std::string& list);

// What a file of regions has besides one region per row.
struct RegionFileOptions {
  std::vector<Level> levels{};  // more than one: columns end in _ and the level
  KeptColumns kept{};           // come first, as they are
  bool lines = false;           // a column `line`: where the row begins in its CSV file
  // Of labels: a column `p_CLASS` for each class, and where they are calibrated the pair, in
  // columns `p0_CLASS` and `p1_CLASS`.
  bool probabilities = false;
  std::vector<std::string> added{};  // of intervals: columns of numbers
  bool flags = false;                // a column `flags`: what no training row had (table_schema.h)
};

// One file, packed where its name ends in .gz. Intervals: [N, K, 3] = prediction, lower, upper in
// an .npy, or as 3 K columns in a CSV.
// Sets of labels: a boolean .npy [N, C], or a CSV of prediction, size and labels (by name where the
// network carries names, joined by '|'). A .json file is a list of objects with the keys of the CSV
// file's columns. "-" is a CSV on standard output. An .npy takes neither several levels nor other
// columns. The artifact must outlive the writer.
std::unique_ptr<RegionWriter> open_region_file(const std::string& out,
                                               const CalibrationArtifact& artifact,
                                               RegionFileOptions options = {});

// A folder that exists, for rows with segmentation(): NAME.png, image | prediction | uncertainty,
// for each image and, where `bands` are asked for, NAME.npy: lower and upper ends [2, C, H, W], or
// booleans [C, H, W] for sets. Of several levels, the first.
std::unique_ptr<RegionWriter> open_region_folder(const std::string& folder, bool bands,
                                                 const RowSource& images);

}  // namespace fcp

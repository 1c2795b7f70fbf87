// What stands behind the public Batch and Answer: tensors. Sources make batches of the rows that
// they read, sinks write the regions of an answer, and neither goes through numbers one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "fcp/data/columns.h"
#include "fcp/data/rows.h"
#include "fcp/distributed/communicator.h"
#include "fcp/methods/scores/score.h"
#include "fcp/predictor.h"
#include "fcp/predictor/context.h"

namespace fcp {

// What a caller knows of rows besides x; only what the calibration asks for need be there.
struct SideInformation {
  std::vector<int64_t> groups;  // indices of the calibration's group names; −1: unknown
  std::vector<double> weights;  // likelihood ratios
  // Localized draws by the place of a row: that of the first one, or those of all of them.
  uint64_t first = 0;
  std::vector<uint64_t> places{};
};

}  // namespace fcp

namespace fcp::internal {

// Where row i of a batch stands, for messages.
using RowNames = Rows::Text;

struct BatchData {
  torch::Tensor x;  // [N, …]
  SideInformation known{};
  bool placed = false;      // `known` says at which places the rows stand
  std::string no_groups{};  // why there are no groups, where rows were to bring them
  RowNames row_name{};      // empty: "x: row 3 (from 0)"
  std::shared_ptr<const CellNotes> cells{};  // of rows that came as cells of a table; else null

  size_t rows() const { return x.dim() == 0 ? 0 : static_cast<size_t>(x.size(0)); }
  std::string name_of(size_t row) const;
};

struct AnswerData {
  std::vector<Level> levels;
  std::vector<Regions> regions;  // one per level; without levels one, whose ends mean nothing
  std::vector<Regions> host{};   // the same on the host, contiguous, ends in double precision
  torch::Tensor points{};        // [N, K] doubles on the host
};

// All rows of batches of one schema, one after the other, with names of their own; at least one.
BatchData joined(const std::vector<BatchData>& batches);

// The answer for some of the rows, in the same memory.
AnswerData part_of(const AnswerData& answer, size_t first, size_t count);

// The rows must outlive the batch.
BatchData batch_of(const Rows& rows, SideInformation known);

// An Error names the first row with a NaN. `output` is [N, …].
void check_numbers(const torch::Tensor& output, const RowNames& row_name);
// Of intervals, or of sets of labels.
void check_numbers(const Regions& regions, const RowNames& row_name);
// Of the scores of rows, so many for each.
void check_numbers(const std::vector<double>& scores, int64_t sides, const RowNames& row_name);

// From public values to what they hold, and back.
struct Access {
  static const BatchData& data(const Batch& batch) { return *batch.data_; }
  static const AnswerData& data(const Answer& answer) { return *answer.data_; }
  static const SchemaData& data(const InputSchema& schema) { return *schema.data_; }
  static const PredictorCore& core(const Predictor& predictor) { return *predictor.core_; }
  static Batch batch(BatchData data) {
    return Batch(std::make_shared<const BatchData>(std::move(data)));
  }
  static Answer answer(AnswerData data) {
    return Answer(std::make_shared<const AnswerData>(std::move(data)));
  }
  static InputSchema schema(std::shared_ptr<const SchemaData> data) {
    return InputSchema(std::move(data));
  }
  static Predictor predictor(std::shared_ptr<const PredictorCore> core) {
    return Predictor(std::move(core));
  }
};

}  // namespace fcp::internal

namespace fcp {

// The rows of a source, batch by batch, on one rank or shared by several. Between batches an
// interrupt is seen.

// Gives every batch to `take`; the observer hears of a stage of this name. Returns the number of
// rows.
size_t each_batch(RowSource& source, const Context& context, std::string_view stage,
                  const std::function<void(const Rows& rows)>& take);

// Batches that ranks share: batch b, rows b · size and following, is read by rank b mod R, which
// passes over the others. `measure` turns rows into bytes, on the rank whose batch it is; `take`
// has them on rank 0, batch by batch. At the end, check_same_files: what several ranks read of a
// file must be the same bytes.
void share_batches(Communicator& ranks, RowSource& source, size_t size,
                   const std::function<std::string(size_t batch, const Rows& rows)>& measure,
                   const std::function<void(size_t batch, std::string_view result)>& take);

// An Error on rank 0 where two ranks read different bytes in the same block of a file that is
// open now: it was changed between. Collective; costs 16 bytes a rank for each 64 KiB of the files.
void check_same_files(Communicator& ranks);

// An Error where the bytes of the ranks differ, by their SHA-256. `what` names them.
void check_same_bytes(Communicator& ranks, const std::string& what, std::string_view bytes);

}  // namespace fcp

#include "fcp/predictor/run_network.h"

#include <algorithm>
#include <span>

#include "fcp/base/error.h"
#include "fcp/base/interrupt.h"
#include "fcp/data/csv_writer.h"
#include "fcp/data/npy.h"
#include "fcp/predictor/batch.h"
#include "fcp/predictor/open_data.h"

namespace fcp {
namespace {

// Writes the rows of one output to an .npy or a CSV file.
class OutputWriter {
 public:
  OutputWriter(std::string name, std::string file)
      : name_(std::move(name)), file_(std::move(file)) {}

  void append(const torch::Tensor& output) {
    const torch::Tensor rows = output.to(torch::kCPU, torch::kFloat).contiguous();
    if (rows.dim() == 0) fail("output '", name_, "' has no rows");
    const int64_t row_size = rows.numel() / std::max<int64_t>(1, rows.size(0));
    if (!npy_ && !csv_) open(rows.sizes().vec(), row_size);
    const float* data = rows.data_ptr<float>();
    if (npy_) {
      npy_->append(std::span<const float>(data, static_cast<size_t>(rows.numel())));
      return;
    }
    const auto size = static_cast<size_t>(row_size);
    csv_->rows(static_cast<size_t>(rows.size(0)), [&](size_t row, CsvText& text) {
      for (const float value : std::span(data + row * size, size)) text.cell(value);
    });
  }

  void close() {
    if (npy_) npy_->close();
    if (csv_) csv_->close();
  }

 private:
  void open(const std::vector<int64_t>& shape, int64_t row_size) {
    if (file_.ends_with(".npy")) {
      npy_ =
          std::make_unique<NpyWriter>(file_, std::vector<int64_t>(shape.begin() + 1, shape.end()));
      return;
    }
    std::vector<std::string> columns;
    for (int64_t i = 0; i < row_size; ++i) {
      columns.push_back(row_size == 1 ? name_ : concat(name_, "_", i));
    }
    csv_ = std::make_unique<CsvWriter>(file_, columns);
  }

  std::string name_;
  std::string file_;
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<CsvWriter> csv_;
};

using OutputWriters = std::vector<std::unique_ptr<OutputWriter>>;

// One per output; null where it is not wanted.
OutputWriters open_writers(const Network& network,
                           const std::map<std::string, std::string>& files) {
  OutputWriters writers;
  for (const TensorInfo& output : network.outputs()) {
    const auto file = files.find(output.name);
    writers.push_back(
        file == files.end() ? nullptr : std::make_unique<OutputWriter>(output.name, file->second));
  }
  return writers;
}

// A file of one number per row has the shape [N, 1]; an input may declare [N] instead.
torch::Tensor as_declared(const torch::Tensor& rows, const TensorInfo& input) {
  const bool flat = input.known_rank && input.shape.size() == 1;
  return flat && rows.dim() == 2 && rows.size(1) == 1 ? rows.squeeze(1) : rows;
}

// The next rows of every source; false at the end.
bool next_rows(const std::vector<std::unique_ptr<RowSource>>& sources, size_t batch,
               std::vector<Rows>& rows) {
  size_t ended = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i]->next(batch, rows[i])) ++ended;
  }
  if (ended == sources.size()) return false;
  const bool differ = std::any_of(
      rows.begin(), rows.end(), [&](const Rows& one) { return one.x.rows() != rows[0].x.rows(); });
  if (ended > 0 || differ) fail("the inputs differ in their number of rows");
  return true;
}

}  // namespace

size_t run_network(const Network& network, const std::vector<std::unique_ptr<RowSource>>& sources,
                   const std::map<std::string, std::string>& files, const Context& context) {
  const OutputWriters writers = open_writers(network, files);
  const size_t batch = context.batch_for(*sources[0]);
  Stage stage(context, "run", sources[0]->size().value_or(0));
  std::vector<Rows> rows(sources.size());
  size_t done = 0;
  while (next_rows(sources, batch, rows)) {
    check_interrupted();
    Tensors inputs;
    for (size_t i = 0; i < rows.size(); ++i) {
      inputs.push_back(as_declared(view(rows[i].x), network.inputs()[i]));
    }
    const Tensors outputs = network.run_rows(inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!writers[i]) continue;
      internal::check_numbers(outputs[i], [&](size_t row) { return rows[0].place(row); });
      writers[i]->append(outputs[i]);
    }
    done += rows[0].x.rows();
    stage.advance(rows[0].x.rows());
  }
  if (done == 0) return 0;
  for (const auto& writer : writers) {
    if (writer) writer->close();
  }
  return done;
}

}  // namespace fcp

// Arrays of Python as tensors, and tensors as arrays of NumPy: both share memory, nothing is
// copied. What is kept alive is the owner of the memory, whichever side that is. By Python's
// buffers and not by NumPy's own interface, which differs between its versions 1 and 2.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <torch/types.h>

#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/input_schema.h"

namespace fcp {

// The numbers of a NumPy array, or of anything that speaks DLPack (tensors of torch, of any
// device). `name` stands for the array in the Error that says what is wrong with it.
torch::Tensor tensor_of(const pybind11::object& array, const std::string& name);

// A tensor as a NumPy array; copied only from another device.
pybind11::object array_of(const torch::Tensor& tensor);
// The same of a tensor of the host, whatever its strides.
pybind11::object lent_array(const torch::Tensor& tensor);

// Declares the class behind the arrays that array_of gives away.
void bind_arrays(pybind11::module_& module);

// Rows x [N, …] and their answers y [N] or [N, K] as the steps read them: one batch at a time is
// checked and converted as the schema says, in host memory. Between batches Python's signals are
// looked at, so that Ctrl-C ends long work. An undefined y: there are no answers. The schema must
// outlive the rows. `before`: how many rows came before these, for Errors.
class TensorRows : public RowSource {
 public:
  TensorRows(const torch::Tensor& x, torch::Tensor y, const internal::SchemaData& schema,
             int64_t before = 0);

  // The next rows, at most `count`, in the caller's memory where that can be; false: none are left.
  bool next_batch(size_t count, internal::BatchData& out);
  // The answers of `count` rows from `first` on, [count, K]: float32, or double where float32
  // numbers are too coarse for them (fcp/training/target_offset.h).
  torch::Tensor answers(int64_t first, int64_t count) const;

  bool next(size_t count, Rows& out) override;
  void rewind() override;
  std::optional<size_t> size() const override { return static_cast<size_t>(x_.size(0)); }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override;

 private:
  torch::Tensor x_, y_;
  const internal::SchemaData& schema_;
  std::vector<int64_t> row_shape_;
  int64_t before_, next_ = 0;
  bool exact_ = false;  // answers are doubles
};

// How many rows to take at a time on this device: as usual, but eight times as many of short rows
// through a network of few numbers, where what a batch costs by itself counts. The bits of a row do
// not depend on it.
size_t batch_for(const TensorRows& rows, const Graph& network, torch::Device device);

// x as rows: [N] becomes [N, 1], and a single number is an Error.
torch::Tensor as_rows(const torch::Tensor& x, const std::string& name);

// An Error where an answer is NaN, which says the row.
void check_answers_no_nan(const torch::Tensor& y);

// Ends the call where a signal waits, as Ctrl-C does. Needs no lock of the caller.
void check_signals();

}  // namespace fcp

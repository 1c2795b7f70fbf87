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
#include "fcp/predictor/input_numbers.h"

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
// converted to float32 in host memory, and kept in doubles beside where the network's input wants
// that; numbers that are not of the input's type are an Error. Between batches Python's signals are
// looked at, so that Ctrl-C ends long work. An undefined y: there are no answers. The network must
// outlive the rows.
class TensorRows : public RowSource {
 public:
  TensorRows(torch::Tensor x, torch::Tensor y, const Graph& network);

  bool next(size_t count, Rows& out) override;
  void rewind() override;
  std::optional<size_t> size() const override { return static_cast<size_t>(x_.size(0)); }
  const std::vector<int64_t>& row_shape() const override { return row_shape_; }
  size_t target_count() const override;

 private:
  torch::Tensor x_, y_;
  const Graph& network_;
  std::vector<int64_t> row_shape_;
  int64_t next_ = 0;
};

// How many rows to take at a time on this device: as usual, but eight times as many of short rows
// through a network of few numbers, where what a batch costs by itself counts. The bits of a row do
// not depend on it.
size_t batch_for(const TensorRows& rows, const Graph& network, torch::Device device);

// x as rows: [N] becomes [N, 1], and a single number is an Error.
torch::Tensor as_rows(const torch::Tensor& x, const std::string& name);

// Rows of x as the network's input takes them: float32, or double where that is not enough. An
// Error where a number is not of the input's type. `before`: how many rows came before x.
torch::Tensor input_rows(const torch::Tensor& x, const Graph& network, int64_t before = 0);

// An Error where X holds a NaN that may not be there, which says the row. `before`: how many rows
// came before these.
void check_missing(const torch::Tensor& x, const MissingNumbers& missing, int64_t before = 0);

// The same of answers, which no network may miss.
void check_answers_no_nan(const torch::Tensor& y);

// Ends the call where a signal waits, as Ctrl-C does. Needs no lock of the caller.
void check_signals();

}  // namespace fcp

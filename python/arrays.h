// Arrays of Python as tensors, and tensors as arrays of NumPy: both share memory, nothing is
// copied. What is kept alive is the owner of the memory, whichever side that is. By Python's
// buffers and not by NumPy's own interface, which differs between its versions 1 and 2.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <torch/types.h>

#include "fcp/calibrate/tensor_rows.h"
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

// Rows x [N, …] and their answers y [N] or [N, K], undefined where there are none, as the steps
// read them, converted as the schema says, which must outlive them. Between batches Python's
// signals are looked at, so that Ctrl-C ends long work. `before`: how many rows came before these,
// for Errors.
internal::TensorRows rows_over(const torch::Tensor& x, const torch::Tensor& y,
                               const internal::SchemaData& schema, int64_t before = 0);

// How many rows to take at a time on this device: as usual, but eight times as many of short rows
// through a network of few numbers, where what a batch costs by itself counts. The bits of a row do
// not depend on it.
size_t batch_for(const RowSource& rows, const Graph& network, torch::Device device);

// x as rows: [N] becomes [N, 1], and a single number is an Error.
torch::Tensor as_rows(const torch::Tensor& x, const std::string& name);

// Ends the call where a signal waits, as Ctrl-C does. Needs no lock of the caller.
void check_signals();

}  // namespace fcp

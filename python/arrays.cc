#include "python/arrays.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include <ATen/DLConvertor.h>

#include "fcp/base/error.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/open_data.h"
#include "fcp/training/target_offset.h"

namespace fcp {
namespace {

namespace py = pybind11;

// The numbers that buffers and tensors share. A buffer's letter says little without its size: 'l'
// has 8 bytes here, 4 elsewhere.
struct NumberType {
  torch::ScalarType type;
  const char* letters;  // as Python's struct module has them, the usual one first
};

constexpr NumberType kNumberTypes[] = {
    {torch::kFloat, "f"}, {torch::kDouble, "d"}, {torch::kLong, "lq"},
    {torch::kBool, "?"},  {torch::kInt, "i"},    {torch::kByte, "B"},
    {torch::kShort, "h"}, {torch::kChar, "b"},   {torch::kHalf, "e"},
};

torch::ScalarType type_of(const py::buffer_info& info, const std::string& name) {
  for (const NumberType& known : kNumberTypes) {
    const bool same = info.format.size() == 1 && std::strchr(known.letters, info.format[0]);
    if (same && static_cast<size_t>(info.itemsize) == c10::elementSize(known.type)) {
      return known.type;
    }
  }
  fail(
      name, ": holds '", info.format,
      "', expected float16 to float64, int8 to int64, uint8 or bool, in this machine's byte order");
}

torch::Tensor from_buffer(const py::buffer& array, const std::string& name) {
  auto info = std::make_unique<py::buffer_info>(array.request());
  const torch::ScalarType type = type_of(*info, name);
  std::vector<int64_t> strides;
  for (size_t i = 0; i < info->strides.size(); ++i) {
    if (info->strides[i] < 0 || info->strides[i] % info->itemsize != 0) {
      fail(name, ": axis ", i, " runs backwards or not in whole numbers; pass a plain copy");
    }
    strides.push_back(info->strides[i] / info->itemsize);
  }
  const std::vector<int64_t> shape(info->shape.begin(), info->shape.end());
  void* data = info->ptr;
  return torch::from_blob(
      data, shape, strides,
      [owner = info.release()](void*) {
        py::gil_scoped_acquire lock;
        delete owner;
      },
      type);
}

// A tensor of the host that lends its memory as a buffer.
struct HostTensor {
  torch::Tensor tensor;

  py::buffer_info buffer() const {
    const auto known =
        std::find_if(std::begin(kNumberTypes), std::end(kNumberTypes),
                     [&](const NumberType& entry) { return entry.type == tensor.scalar_type(); });
    if (known == std::end(kNumberTypes)) {
      fail("NumPy has no type for ", c10::toString(tensor.scalar_type()));
    }
    const auto size = static_cast<py::ssize_t>(tensor.element_size());
    std::vector<py::ssize_t> strides;
    for (const int64_t stride : tensor.strides()) strides.push_back(stride * size);
    return {tensor.data_ptr(),    size,   std::string(1, known->letters[0]), tensor.dim(),
            tensor.sizes().vec(), strides};
  }
};

torch::Tensor from_dlpack(const py::object& array, const std::string& name) {
  const py::capsule capsule = array.attr("__dlpack__")();
  if (std::string(capsule.name()) != "dltensor") fail(name, ": its DLPack capsule is used up");
  const torch::Tensor tensor = at::fromDLPack(capsule.get_pointer<DLManagedTensor>());
  // The tensor owns the memory now; a capsule of this name does not free it.
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return tensor;
}

// Rows as float32, and as double where that is asked for, on the host in memory of their own.
Array staged(const torch::Tensor& rows, bool exact = false) {
  Array array;
  array.shape = rows.sizes().vec();
  if (rows.is_cpu() && rows.is_contiguous() && rows.scalar_type() == torch::kFloat) {
    array.values.assign(rows.data_ptr<float>(), rows.data_ptr<float>() + rows.numel());
  } else {
    array.values.resize(static_cast<size_t>(rows.numel()));
    torch::from_blob(array.values.data(), array.shape, torch::kFloat).copy_(rows);
  }
  if (exact) {
    array.exact.resize(array.values.size());
    torch::from_blob(array.exact.data(), array.shape, torch::kDouble).copy_(rows);
  }
  return array;
}

}  // namespace

torch::Tensor tensor_of(const py::object& array, const std::string& name) {
  if (py::isinstance<py::buffer>(array)) return from_buffer(array, name);
  if (py::hasattr(array, "__dlpack__")) return from_dlpack(array, name);
  fail(name, ": is not an array");
}

py::object array_of(const torch::Tensor& tensor) {
  return lent_array(tensor.to(torch::kCPU).contiguous());
}

py::object lent_array(const torch::Tensor& tensor) {
  return py::module_::import("numpy").attr("asarray")(py::cast(HostTensor{tensor}));
}

void bind_arrays(py::module_& module) {
  py::class_<HostTensor>(module, "HostTensor", py::buffer_protocol())
      .def_buffer([](const HostTensor& self) { return self.buffer(); });
}

torch::Tensor as_rows(const torch::Tensor& x, const std::string& name) {
  if (x.dim() == 0) fail(name, ": is a single number, expected rows");
  return x.dim() == 1 ? x.unsqueeze(1) : x;
}

void check_answers_no_nan(const torch::Tensor& y) {
  const auto found = MissingNumbers(Graph()).find_refused(y);
  if (!found) return;
  fail("y: row ", found->row, " (from 0) has NaN in column ", found->column, ", expected a number");
}

void check_signals() {
  py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

TensorRows::TensorRows(const torch::Tensor& x, torch::Tensor y, const internal::SchemaData& schema,
                       int64_t before)
    : x_(as_rows(x, "X")), y_(std::move(y)), schema_(schema), before_(before) {
  const std::vector<int64_t> shape = x_.sizes().vec();
  row_shape_.assign(shape.begin() + 1, shape.end());
  if (!y_.defined()) return;
  y_ = as_rows(y_, "y").flatten(1);
  if (y_.size(0) != x_.size(0)) fail("X has ", x_.size(0), " rows, y has ", y_.size(0));
  check_answers_no_nan(y_);
  exact_ = y_.scalar_type() == torch::kDouble && !target_offsets(staged(y_, true)).empty();
}

size_t TensorRows::target_count() const {
  return y_.defined() ? static_cast<size_t>(y_.size(1)) : 0;
}

void TensorRows::rewind() { next_ = 0; }

size_t batch_for(const TensorRows& rows, const Graph& network, torch::Device device) {
  constexpr int64_t kFewNumbers = 4096;
  constexpr size_t kShortRow = 32, kMore = 8;
  const size_t usual = Context{.device = device}.batch_for(rows);
  int64_t numbers = 0;
  for (const auto& [name, values] : network.initializers) numbers += values.numel();
  const bool small = element_count(rows.row_shape()) <= kShortRow && numbers <= kFewNumbers;
  return device.is_cpu() && small ? kMore * usual : usual;
}

torch::Tensor TensorRows::answers(int64_t first, int64_t count) const {
  return y_.narrow(0, first, count).to(torch::kCPU, exact_ ? torch::kDouble : torch::kFloat);
}

bool TensorRows::next_batch(size_t count, internal::BatchData& out) {
  check_signals();
  const int64_t first = next_;
  const int64_t rows = std::min<int64_t>(static_cast<int64_t>(count), x_.size(0) - first);
  if (rows <= 0) return false;
  out = {};
  out.row_name = [from = before_ + first](size_t row) {
    return concat("X: row ", from + static_cast<int64_t>(row), " (from 0)");
  };
  out.x = schema_.checked(x_.narrow(0, first, rows), out.row_name);
  next_ += rows;
  return true;
}

bool TensorRows::next(size_t count, Rows& out) {
  const int64_t first = next_;
  internal::BatchData batch;
  if (!next_batch(count, batch)) return false;
  static const std::string kName = "X";
  out.first_row = static_cast<size_t>(first);
  out.stand_in(kName, out.first_row);
  out.x = staged(batch.x, batch.x.scalar_type() == torch::kDouble);
  out.y = y_.defined() ? staged(answers(first, batch.x.size(0)), exact_) : Array();
  return true;
}

}  // namespace fcp

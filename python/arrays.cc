#include "python/arrays.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include <ATen/DLConvertor.h>

#include "fcp/base/error.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/open_data.h"

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

void check_signals() {
  py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

internal::TensorRows rows_over(const torch::Tensor& x, const torch::Tensor& y,
                               const internal::SchemaData& schema, int64_t before) {
  return {
      as_rows(x, "X"), y.defined() ? as_rows(y, "y") : y, {"X", &schema, before, check_signals}};
}

size_t batch_for(const RowSource& rows, const Graph& network, torch::Device device) {
  constexpr int64_t kFewNumbers = 4096;
  constexpr size_t kShortRow = 32, kMore = 8;
  const size_t usual = Context{.device = device}.batch_for(rows);
  int64_t numbers = 0;
  for (const auto& [name, values] : network.initializers) numbers += values.numel();
  const bool small = element_count(rows.row_shape()) <= kShortRow && numbers <= kFewNumbers;
  return device.is_cpu() && small ? kMore * usual : usual;
}

}  // namespace fcp

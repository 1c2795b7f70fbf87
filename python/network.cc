// Networks: reading, writing, running and what there is to know of them.
#include <algorithm>

#include <pybind11/stl.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/calibrate/default_cut.h"
#include "fcp/nn/graph/batch_axis.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/network_inputs.h"

#include "python/arrays.h"
#include "python/module.h"

namespace fcp {
namespace {

namespace py = pybind11;

using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

Shapes shapes_of(const std::vector<TensorInfo>& tensors) {
  Shapes shapes;
  for (const TensorInfo& tensor : tensors) shapes.emplace_back(tensor.name, tensor.shape);
  return shapes;
}

// The network as it takes rows and columns.
Graph as_rows_take(const Graph& network) {
  Graph changed = with_rows_first(network);
  name_text_columns(changed);
  return changed;
}

// The graph without the outputs that only name tensors, which stay where they are.
Graph without_outputs(Graph graph, const std::vector<std::string>& names) {
  std::erase_if(graph.outputs, [&](const TensorInfo& output) {
    return std::find(names.begin(), names.end(), output.name) != names.end();
  });
  return graph;
}

py::tuple run_network_rows(const LoadedNetwork& loaded, const py::object& array) {
  const torch::Tensor x = as_rows(tensor_of(array, "X"), "X");
  std::vector<Tensors> parts;
  {
    py::gil_scoped_release unlocked;
    torch::NoGradGuard no_grad;
    const auto batch = static_cast<int64_t>(Context().batch_for(rows_over(x, {}, loaded.schema())));
    for (int64_t first = 0; first < x.size(0); first += batch) {
      check_signals();
      const torch::Tensor rows = x.narrow(0, first, std::min(batch, x.size(0) - first));
      check_input_numbers(rows, loaded.graph(),
                          [&](int64_t row) { return concat("X: row ", first + row, " (from 0)"); });
      parts.push_back(loaded.network().run_rows({rows}));
    }
  }
  if (parts.empty()) fail("X: has no rows");
  py::tuple outputs(parts[0].size());
  for (size_t i = 0; i < parts[0].size(); ++i) {
    Tensors same;
    for (const Tensors& part : parts) same.push_back(part[i]);
    outputs[i] = array_of(same.size() == 1 ? same[0] : torch::cat(same));
  }
  return outputs;
}

// Name and row shape of each input of a network that is packed, and whether rows are double;
// nothing of one that is not.
std::pair<Shapes, bool> layout_shapes(const LoadedNetwork& self) {
  Shapes shapes;
  if (!is_packed(self.graph())) return {shapes, false};
  const InputLayout layout = *layout_of(self.graph());
  for (const InputPlace& place : layout.places) shapes.emplace_back(place.input.name, place.shape);
  return {shapes, layout.wide()};
}

}  // namespace

const Network& LoadedNetwork::network() const {
  std::call_once(made_, [this] { network_ = std::make_unique<const Network>(graph_); });
  return *network_;
}

const internal::SchemaData& LoadedNetwork::schema() const {
  std::call_once(encoded_,
                 [this] { schema_ = std::make_unique<const internal::SchemaData>(graph_); });
  return *schema_;
}

void bind_network(py::module_& module) {
  py::class_<LoadedNetwork, std::shared_ptr<LoadedNetwork>>(module, "Network")
      .def_static(
          "read",
          [](const std::string& path) {
            py::gil_scoped_release unlocked;
            return std::make_shared<LoadedNetwork>(as_rows_take(read_onnx(path)), path);
          },
          py::arg("path"))
      .def_static(
          "parse",
          [](const py::bytes& bytes, const std::string& name,
             const std::vector<std::string>& dropped_outputs) {
            const std::string_view view = bytes;
            py::gil_scoped_release unlocked;
            return std::make_shared<LoadedNetwork>(
                as_rows_take(without_outputs(parse_onnx(view, name), dropped_outputs)), name);
          },
          py::arg("bytes"), py::arg("name"),
          py::arg("dropped_outputs") = std::vector<std::string>())
      .def(py::pickle(
          [](const LoadedNetwork& self) {
            return py::make_tuple(py::bytes(serialize_onnx(self.graph())), self.name());
          },
          [](const py::tuple& state) {
            const py::bytes bytes = state[0];
            const auto name = state[1].cast<std::string>();
            return std::make_shared<LoadedNetwork>(parse_onnx(std::string_view(bytes), name), name);
          }))
      .def(
          "write",
          [](const LoadedNetwork& self, const std::string& path) {
            py::gil_scoped_release unlocked;
            write_onnx(unpack_inputs(self.graph()), path);
          },
          py::arg("path"))
      .def("run", run_network_rows, py::arg("x"))
      .def(
          "packed",
          [](const LoadedNetwork& self, const std::vector<std::vector<int64_t>>& shapes) {
            if (shapes.size() != self.graph().inputs.size()) {
              fail("the network has ", self.graph().inputs.size(), " inputs, found ",
                   shapes.size());
            }
            return std::make_shared<LoadedNetwork>(
                pack_inputs(self.graph(), layout_of(self.graph().inputs, shapes)), self.name());
          },
          py::arg("shapes"))
      .def("layout", layout_shapes)
      .def("cuts", [](const LoadedNetwork& self) { return valid_cuts(self.graph()); })
      .def(
          "resolve_cut",
          [](const LoadedNetwork& self, const std::string& where) {
            return cut(self.graph(), where).feature;
          },
          py::arg("where"))
      .def("default_cut",
           [](const LoadedNetwork& self) { return default_cut(self.graph(), ScoreOptions()).cut; })
      .def("layers", [](const LoadedNetwork& self) { return count_layers(self.graph()); })
      .def_property_readonly("name", &LoadedNetwork::name)
      .def_property_readonly(
          "inputs", [](const LoadedNetwork& self) { return shapes_of(own_inputs(self.graph())); })
      .def_property_readonly(
          "outputs", [](const LoadedNetwork& self) { return shapes_of(self.graph().outputs); });
}

}  // namespace fcp

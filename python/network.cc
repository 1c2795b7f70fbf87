// Networks: reading, writing, running and what there is to know of them.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <pybind11/stl.h>
#include <torch/utils.h>

#include "fcp/base/error.h"
#include "fcp/base/special_numbers.h"
#include "fcp/calibrate/choose_cut.h"
#include "fcp/data/columns.h"
#include "fcp/data/images/image_transform.h"
#include "fcp/nn/graph/batch_axis.h"
#include "fcp/nn/graph/cut.h"
#include "fcp/nn/graph/input_layout.h"
#include "fcp/nn/graph/onnx_reader.h"
#include "fcp/nn/graph/onnx_writer.h"
#include "fcp/predictor/context.h"
#include "fcp/predictor/input_numbers.h"
#include "fcp/predictor/network_inputs.h"

#include "python/arrays.h"
#include "python/options.h"

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

// What a network calls its columns and classes, so that tables and labels can come by name.

namespace {

namespace py = pybind11;

std::optional<CsvEncoding> encoding_of(const LoadedNetwork& network) {
  const auto& metadata = network.graph().metadata;
  const auto found = metadata.find(kEncodingKey);
  if (found == metadata.end()) return std::nullopt;
  return parse_encoding(found->second);
}

// The columns of a table that the network reads, with whether any number in it is read as it is;
// empty where the network does not know.
std::vector<std::pair<std::string, bool>> columns_of(const LoadedNetwork& network) {
  std::vector<std::pair<std::string, bool>> columns;
  const std::optional<CsvEncoding> encoding = encoding_of(network);
  if (!encoding || !encoding->header) return columns;
  for (size_t i = 0; i < encoding->columns.size(); ++i) {
    const bool number = !encoding->is_category(i) && encoding->format(i) == CellFormat{} &&
                        encoding->missing.empty();  // -999 may stand for no value
    columns.emplace_back(encoding->columns[i], number);
  }
  return columns;
}

// One column of the encoding alone.
CsvEncoding only_column(const CsvEncoding& all, size_t i) {
  CsvEncoding one{.columns = {all.columns[i]}, .categories = {all.categories[i]}};
  if (!all.means.empty()) one.means = {all.means[i]};
  if (!all.formats.empty()) one.formats = {all.formats[i]};
  one.others = {all.has_other(i)};
  if (!all.facts.empty()) one.facts = {all.facts[i]};
  one.missing = all.missing;
  return one;
}

// The features of cells of one column, [cells, features], and the flag of each (table_schema.h);
// rows[i] is where the i-th cell stands.
py::tuple encode_cells(const LoadedNetwork& network, size_t column,
                       const std::vector<std::string>& cells, const std::vector<size_t>& rows) {
  const std::optional<CsvEncoding> all = encoding_of(network);
  if (!all || column >= all->columns.size()) fail("the network has no column ", column);
  const CsvEncoding encoding = only_column(*all, column);
  const auto width = static_cast<int64_t>(encoding.feature_count());
  const torch::Tensor features = torch::empty({static_cast<int64_t>(cells.size()), width});
  const std::vector<ColumnCells> column_cells = {
      {.text = [&cells](size_t i) { return &cells[i]; }}};
  const CellNotes notes = encode_columns(
      encoding, column_cells, cells.size(),
      [&rows](size_t i) { return concat("X: row ", rows.at(i), " (from 0)"); },
      features.data_ptr<float>());
  return py::make_tuple(array_of(features), notes.flags);
}

// The numbers of a column that are not far from those of the training rows.
std::pair<double, double> usual_range(const LoadedNetwork& network, size_t column) {
  const std::optional<CsvEncoding> all = encoding_of(network);
  if (!all || column >= all->columns.size()) fail("the network has no column ", column);
  if (all->facts.empty()) return {-kInfinity, kInfinity};
  return all->facts[column].usual();
}

std::vector<std::string> class_names(const LoadedNetwork& network) {
  const auto& metadata = network.graph().metadata;
  const auto found = metadata.find(kClassesKey);
  return found == metadata.end() ? std::vector<std::string>{} : parse_class_names(found->second);
}

std::shared_ptr<LoadedNetwork> with_class_names(const LoadedNetwork& network,
                                                const std::vector<std::string>& names) {
  Graph graph = network.graph();
  graph.metadata[kClassesKey] = class_names_text(names);
  return std::make_shared<LoadedNetwork>(std::move(graph), network.name());
}

}  // namespace

void bind_names(py::module_& module) {
  module.def("columns", columns_of, py::arg("network"));
  module.def("encode_cells", encode_cells, py::arg("network"), py::arg("column"), py::arg("cells"),
             py::arg("rows"));
  module.def("usual_range", usual_range, py::arg("network"), py::arg("column"));
  module.def("class_names", class_names, py::arg("network"));
  module.def("with_class_names", with_class_names, py::arg("network"), py::arg("names"));
}

}  // namespace fcp

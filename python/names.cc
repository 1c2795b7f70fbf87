// What a network calls its columns and classes, so that tables and labels can come by name.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <pybind11/stl.h>

#include "fcp/base/error.h"
#include "fcp/base/infinity.h"
#include "fcp/data/columns.h"
#include "fcp/data/encoding_text.h"
#include "fcp/data/images/image_text.h"

#include "python/arrays.h"
#include "python/module.h"

namespace fcp {
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

// The features of cells of one column, [cells, features], and the flag of each (column_facts.h);
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

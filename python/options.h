// The option table in Python's values: what there is, and requests made of an estimator's
// parameters.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <pybind11/pybind11.h>

#include "fcp/methods/options.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/nn/runtime/network.h"
#include "fcp/predictor/input_schema.h"

namespace fcp {

// The request of parameters by name; those that are not in the table are not looked at. None stands
// for no text. An OptionError says what was found and what is expected.
MethodRequest request_of(const pybind11::dict& parameters);

// Declares option_table, check_values (of request_of) and check_options (of the library).
void bind_options(pybind11::module_& module);

// One function for each module that has an interface in Python.

// A network as Python holds it. It never changes; what runs is made when it is first asked for.
class LoadedNetwork {
 public:
  LoadedNetwork(Graph graph, std::string name) : graph_(std::move(graph)), name_(std::move(name)) {}

  const Graph& graph() const { return graph_; }
  const std::string& name() const { return name_; }  // of its file
  const Network& network() const;
  const internal::SchemaData& schema() const;

 private:
  Graph graph_;
  std::string name_;
  mutable std::once_flag made_, encoded_;
  mutable std::unique_ptr<const Network> network_;
  mutable std::unique_ptr<const internal::SchemaData> schema_;
};

void bind_network(pybind11::module_& module);
void bind_names(pybind11::module_& module);
void bind_calibrated(pybind11::module_& module);
void bind_fit(pybind11::module_& module);
void bind_outliers(pybind11::module_& module);

}  // namespace fcp

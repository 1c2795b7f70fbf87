// A graph that grows: nodes and constants under names that no tensor of it has yet, in forms that
// every operator set from kLeastExportOpset on has. Export writes regions with it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <torch/types.h>

#include "fcp/nn/graph/graph.h"

namespace fcp {

constexpr int64_t kLeastExportOpset = 9;

// What another runtime may compute differently, relative to the largest number in sight: 128
// roundoffs of single precision. export.h says what regions gain by it.
constexpr double kRuntimeSlack = 0x1p-17;

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph graph);

  const Graph& graph() const { return graph_; }
  bool has(const std::string& tensor) const { return tensors_.contains(tensor); }

  // A node with one output; its name.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::map<std::string, Attribute> attributes = {});

  // The same operator on other inputs; the names of its outputs, "" where the node has none.
  std::vector<std::string> copy(const Node& node, std::vector<std::string> inputs);

  std::string constant(const torch::Tensor& value);

  // The tensor of this name; where the graph has none, the constant, under its name.
  std::string tensor_or(const std::string& name, const torch::Tensor& value);

  // ReduceSum or ReduceMax along one axis, which then has size 1 or is gone.
  std::string reduce(const std::string& op, const std::string& x, int64_t axis, bool keep);

  // The numbers along the last axis, which are `count`, in ascending order.
  std::string sort(const std::string& x, int64_t count);

  // Rows kept, everything else in the given shape; one number of it may be −1.
  std::string reshape_rows(const std::string& x, std::vector<int64_t> row_shape);

  // Makes the tensor an output of the graph, called as `info` says.
  void output(const std::string& tensor, const TensorInfo& info);

  Graph finish() &&;

 private:
  std::string fresh(const std::string& stem);

  Graph graph_;
  std::set<std::string> tensors_;
  int64_t made_ = 0;
};

}  // namespace fcp

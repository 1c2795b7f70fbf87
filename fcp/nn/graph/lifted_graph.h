// The graph that rows_first.h writes: a tensor t of the head, for one row of shape [a, b, …], is
// lifted to [N, a, b, …] under a name of its own. Tested by tests/bounds/moved_rows_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

using LiftedShape = std::vector<int64_t>;  // of one row; [1, …] where rows come first

class LiftedGraph {
 public:
  // Of the graph all but its nodes.
  explicit LiftedGraph(Graph graph);

  static std::string lifted(const std::string& name) { return name + "/rows_first"; }

  void set_shape(const std::string& name, LiftedShape shape) { shapes_[name] = std::move(shape); }
  const LiftedShape& shape(const std::string& name) const { return shapes_.at(name); }
  const LiftedShape& out(const Node& node) const { return shape(node.outputs[0]); }

  void set_varies(const std::string& name) { varies_.insert(name); }
  bool varies(const std::string& name) const { return varies_.contains(name); }

  void set_constant(const std::string& name, const ConstantTensor& value);
  ConstantTensor constant(const std::string& name) const;  // undefined where it is none
  std::string integers(const std::vector<int64_t>& values);

  int64_t opset() const { return graph_.opset; }

  // A node whose inputs are names of this graph; its outputs are lifted.
  void add(Node node, std::vector<std::string> inputs);
  // A node whose one output is not lifted; that of the head's node then is.
  void add_between(Node node, std::vector<std::string> inputs);

  // The lifted form of `to`, made of `from`, a tensor of this graph, in rows of this shape.
  void reshape(const std::string& from, const std::string& to, LiftedShape rows);
  // The same under a new name.
  std::string reshaped(const std::string& from, LiftedShape rows);
  // The lifted tensor with dimensions of 1 in front, for broadcasting against others.
  std::string with_rank(const std::string& name, size_t rank);
  // The head's own output again, [N, …].
  void finish(const std::string& output);

  Graph take();

 private:
  std::string new_name();

  Graph graph_;
  std::map<std::string, LiftedShape> shapes_;
  std::set<std::string> varies_;
  int64_t made_ = 0;
};

}  // namespace fcp

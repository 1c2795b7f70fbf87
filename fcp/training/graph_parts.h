// Small steps in which the graphs of trained networks are put together.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fcp/base/error.h"
#include "fcp/nn/graph/graph.h"

namespace fcp {

// [batch, columns], the batch being of any size.
inline TensorInfo batch_of(const std::string& name, int64_t columns) {
  return {.name = name,
          .type = ElementType::kFloat,
          .shape = {kDynamic, columns},
          .dimension_names = {"batch", ""}};
}

// output = op(inputs)
inline void append_node(Graph& graph, const char* op, std::vector<std::string> inputs,
                        const std::string& output,
                        std::map<std::string, Attribute> attributes = {}) {
  graph.nodes.push_back({.name = concat(output, "/", op),
                         .op = op,
                         .domain = "",
                         .inputs = std::move(inputs),
                         .outputs = {output},
                         .attributes = std::move(attributes)});
}

}  // namespace fcp

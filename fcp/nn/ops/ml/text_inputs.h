// Inputs of text, as skl2onnx writes pipelines with OneHotEncoder and OrdinalEncoder. There are no
// tensors of text here: such an input becomes numbers, one for each of its columns and each text
// that the network knows, 1 where the cell is that text. Nodes behind it number the texts, and the
// encoders compare those numbers. A text that the network does not know is all zeros.
//
//   cells [N, K] → input [N, K · categories] → Reshape → Mul by 1, 2, … → ReduceSum → Cast
//
// The metadata kTextsKey say which inputs these are, by which tables are read (network_inputs.h).
// Tested by tests/nn/ops/ml/text_inputs_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

inline constexpr char kTextsKey[] = "fcp.texts";

struct TextInput {
  std::string name;
  int64_t columns = 1;                  // of text
  std::vector<std::string> categories;  // that each of them may have
};

// Makes numbers of these inputs, whose shapes are those of the text. An Error names a node that
// reads text in another way.
void number_texts(Graph& graph, const std::vector<std::string>& inputs);

// The inputs that were text; none in most networks.
std::vector<TextInput> text_inputs(const Graph& network);

}  // namespace fcp

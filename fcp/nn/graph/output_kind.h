// What the numbers of a classifier's output are, read from the operators that make them.
#pragma once

#include <string>

#include "fcp/nn/graph/graph.h"

namespace fcp {

enum class OutputKind {
  kPlain,             // nothing is known: logits, or the prediction of a regression
  kProbabilities,     // of all classes
  kLogProbabilities,  // their logarithms
  kProbability,       // of the second of two classes: the output of a Sigmoid
};

struct OutputMeaning {
  OutputKind kind = OutputKind::kPlain;
  std::string logits;  // the tensor before the softmax or sigmoid; empty where there is none
};

// Looks back from `output` through nodes that keep the numbers or only trim them (Identity, Cast,
// Dropout, Reshape, Flatten, Squeeze, Unsqueeze, Clip) to a Softmax or LogSoftmax over the classes,
// its logarithm or exponential, exp(x) / Σ exp(x), numbers divided by their own sum after a Sigmoid
// or Exp, a Sigmoid, or a classifier of domain ai.onnx.ml that answers probabilities.
OutputMeaning output_meaning(const Graph& graph, const std::string& output);

// The graph with the one output whose softmax over the last axis is what `output` says: the logits
// where they are known, the logarithm of probabilities, otherwise `output` itself. For a
// probability of one class, and for one number per row where `one_logit` says that it is a logit,
// [0, logit]. Same inputs.
Graph logits_graph(const Graph& graph, const std::string& output, bool one_logit = false);

}  // namespace fcp

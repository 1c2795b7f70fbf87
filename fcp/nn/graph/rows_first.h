// A head whose rows leave the first axis, as torch's attention moves tokens before the batch,
// written so that they stay there. Linear bounds go back along rows and need that.
//
// Of one row every shape is known. Every tensor t of it becomes [N, …shape of t for one row], and
// every operator works on that: axes move by one, shapes that were computed are constants,
// matrices multiply as stacks. The answers are those of the rows run one by one.
//
// Assumes that rows do not depend on each other (rows_apart.h). Cost: one run of a row.
// Tested by tests/bounds/moved_rows_test.cc.
#pragma once

#include <optional>
#include <string>

#include "fcp/nn/graph/graph.h"

namespace fcp {

class Network;

// Whether a node moves the rows away from the first axis: its description; nothing where none does.
std::optional<std::string> moves_rows(const Network& head);

// The head with its rows first; `row` [1, …] is any row of features. An Error names a node for
// which that is not known.
Graph rows_first(const Network& head, const at::Tensor& row);

}  // namespace fcp

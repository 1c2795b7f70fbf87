// Networks with several inputs, as the rest of the library sees them: a row of data is one list of
// numbers, in which the inputs lie side by side, and nodes before the network take it apart again.
// So rows are split, hashed, batched and served the same way whatever the network takes.
//
//   rows [N, D]  →  Gather columns  →  Cast  →  Reshape  →  each of the network's own inputs
//
// D counts the numbers of all inputs; their dimensions but the first must be known, by the file or
// by the rows that calibration sees. Rows are double where an input is int32, int64 or double, and
// float32 otherwise, so that every number reaches its input exactly. Files have the network's own
// inputs: pack_inputs is applied when a calibrated file is read, unpack_inputs when one is written.
//
// Tested by tests/nn/graph/input_layout_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fcp/nn/graph/graph.h"

namespace fcp {

// The metadata of a network that is packed, or was; and the name of its one input.
inline constexpr char kInputsKey[] = "fcp.inputs";
inline constexpr char kRowsInput[] = "fcp.rows";

struct InputPlace {
  TensorInfo input;            // as the file declares it
  std::vector<int64_t> shape;  // of one row
  int64_t first = 0;           // its first column among those of all inputs
  int64_t columns = 0;

  // "mask", or "ids[3]": what a column of a row is called. `column` counts from 0 in this input.
  std::string column_name(int64_t column) const;
};

struct InputLayout {
  std::vector<InputPlace> places;  // in the order of the network's inputs

  int64_t columns() const;
  const InputPlace& place_of(int64_t column) const;
  // Whether the rows are double.
  bool wide() const;
};

// Whether float32 does not hold all numbers of this type.
bool is_wide(ElementType type);

// The layout in which input i has rows of shape `shapes[i]`. An Error names an input that has no
// rows, or whose declared shape is another.
InputLayout layout_of(const std::vector<TensorInfo>& inputs,
                      const std::vector<std::vector<int64_t>>& shapes);

// The layout that the metadata tell; nothing where the network was never packed.
std::optional<InputLayout> layout_of(const Graph& network);

bool is_packed(const Graph& network);

// The inputs that the file declares, whether or not the network is packed.
std::vector<TensorInfo> own_inputs(const Graph& network);

// The network with one input, kRowsInput. An Error where the network has other inputs than the
// layout.
Graph pack_inputs(const Graph& network, const InputLayout& layout);

// The network with its own inputs again; the same graph where it is not packed. Nodes that read the
// packed rows themselves get them put together from the inputs.
Graph unpack_inputs(const Graph& network);

}  // namespace fcp

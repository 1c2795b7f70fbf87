// Rows of data for networks with several inputs, which lie side by side in them (input_layout.h).
//
// A network with several inputs takes its rows from
//   an .npz archive with one entry per input, named like it, [N, …];
//   the columns of a CSV file: `mask` is the input of one number per row, `ids_0`, `ids_1`, … are
//   the numbers of the input `ids`; where the columns have other names, all of them in the order
//   of the inputs, whose shapes the network must then fix.
//
// A network that takes text reads CSV files alone, by the names of its inputs.
//
// Tested by tests/predictor/network_inputs_test.cc, tests/python/test_inputs.py.
#pragma once

#include <memory>

#include "fcp/data/images/image_transform.h"
#include "fcp/data/rows.h"
#include "fcp/nn/graph/graph.h"
#include "fcp/predictor/open_data.h"

namespace fcp {

// Of a network that takes text (text_inputs.h): it remembers how a table's columns, called after
// its inputs, become numbers, as networks do that fcp trained; several inputs are packed. Other
// networks stay as they are.
void name_text_columns(Graph& network);

// Makes the network take rows: puts them first (batch_axis.h), and packs the inputs of one that has
// several (input_layout.h), by the shapes that its file and these rows tell.
void pack_for_rows(const DataOptions& options, Graph& network);

// The same for rows in memory: the file must tell the shapes of several inputs.
void pack_closed_inputs(Graph& network);

// The rows of a network that is packed.
std::unique_ptr<RowSource> open_packed(const DataOptions& options, const Graph& network,
                                       CsvOptions csv);

// Images for networks that do not take planes of normalised numbers: TensorFlow's [N, H, W, 3], and
// pixels as uint8.
//
// Tested by tests/predictor/network_inputs_test.cc.

// Whether the input takes pixels as they are, 0 to 255.
bool takes_pixels(const TensorInfo& input);

// The transform that leaves pixels as they are.
ImageTransform pixel_transform();

// Rows [3, H, W] in the order of the input's axes, and rounded where it takes pixels.
std::unique_ptr<RowSource> images_for_input(std::unique_ptr<RowSource> rows,
                                            const TensorInfo& input);

}  // namespace fcp

// The protobuf messages of ONNX, for what reads and writes them.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include FCP_ONNX_HEADER
#pragma GCC diagnostic pop

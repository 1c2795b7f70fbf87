// The messages of the Open Inference Protocol v2 over HTTP: an infer request from JSON, with the
// binary tensor extension, and its response. Plain values; nothing here computes.
//
//   {"id": "7", "parameters": {"alpha": "0.1,0.05", "timeout": 500000},
//    "inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}],
//    "outputs": [{"name": "lower", "parameters": {"binary_data": true}}]}
//
// With Inference-Header-Content-Length the JSON is followed by the bytes of the inputs that have
// `binary_data_size`, little-endian and in their order; BYTES are preceded by their length in four
// bytes. Infinite numbers in JSON are the strings "inf" and "-inf". `timeout` is in microseconds,
// as Triton has it. "quantiles", "above", "below" and "between" are a number or texts with commas
// between, as "0.05,0.95" and "10:30"; "probabilities" is true or false. `flags` adds the tensor
// "flags", what no training row had. An unknown parameter is an Error.
//
// Reference: github.com/kserve/open-inference-protocol, and Triton's binary data extension.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fcp/predictor.h"

namespace fcp {

struct RequestedOutput {
  std::string name;
  bool binary = false;
};

struct TensorRequest {
  std::string id;                   // "" where there is none
  std::string alpha;                // levels as text, with commas; "": default
  std::optional<double> timeout{};  // seconds
  // What is answered beside the regions, as the program and Python name it: columns of predictive
  // distributions, the probabilities of the classes, or the flags of the rows.
  std::vector<std::string> quantiles{}, above{}, below{}, between{};
  bool probabilities = false, flags = false;
  std::vector<NamedValues> inputs;                      // at least one; numbers become doubles
  std::optional<std::vector<RequestedOutput>> outputs;  // none: all
  bool binary_outputs = false;                          // of all that do not say otherwise
};

struct TensorLimits {
  size_t rows = 65'536;
  size_t inputs = 4'096;
  size_t values = size_t{1} << 27;  // of an input
};

// An Error where an id is longer than 512 bytes or has a NUL in it: no key of a database.
void check_id(const std::string& id);

// header_size: of Inference-Header-Content-Length; none: all of the body is JSON. An Error says
// what is wrong in one line.
TensorRequest parse_tensor_request(std::string_view body, std::optional<size_t> header_size,
                                   const TensorLimits& limits = {});

// One output: FP32, INT64, BOOL or BYTES by what it holds.
struct ResponseTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::variant<std::vector<float>, std::vector<int64_t>, std::vector<uint8_t>,
               std::vector<std::string>>
      data;
  bool binary = false;
};

// Those of an answer's tensors that a request asks for, in its order. An Error names one that is
// not there.
std::vector<ResponseTensor> asked_tensors(const std::vector<ResponseTensor>& all,
                                          const TensorRequest& request);

struct TensorResponse {
  std::string model;
  std::string version;
  std::string id;
  std::vector<ResponseTensor> outputs;
  std::variant<double, std::string> level = 0.;  // of the regions; several with commas
};

struct TensorText {
  std::string body;
  std::optional<size_t> header_size;  // where bytes follow the JSON
};
TensorText tensor_response_text(const TensorResponse& response);

const char* datatype_of(const ResponseTensor& tensor);

// Tensors as the bytes of the binary extension: little-endian, BYTES preceded by their length in
// four bytes.
// Tested by tests/server/tensor_message_test.cc and fuzz/fuzz_request.cc.

// The values of a tensor of this datatype, whose shape has `count` elements. An Error begins with
// `where`.
decltype(NamedValues::values) read_binary_data(std::string_view bytes, const std::string& type,
                                               size_t count, const std::string& where);

std::string data_bytes(const ResponseTensor& tensor);

}  // namespace fcp

// Any bytes as what a client sends: an HTTP message in pieces, its body packed or not, and as an
// infer request, in JSON and with binary tensors, and as feedback. An Error or a status is a right
// answer; a crash is not, nor is another request when the same bytes come in other pieces.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fcp/base/error.h"

#include "apps/server/http_message.h"
#include "apps/server/json_messages.h"
#include "apps/server/tensor_message.h"

namespace {

using State = fcp::HttpReader::State;
constexpr size_t kMostBytes = 65'536;

std::vector<std::string> bodies_in(std::string_view bytes, size_t piece) {
  fcp::HttpReader reader({.head = 4096, .body = kMostBytes});
  std::vector<std::string> bodies;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    State state = reader.feed(bytes.substr(at, piece));
    while (state == State::kRequest) {
      fcp::HttpRequest request = reader.take();
      bodies.push_back(request.method + request.path + request.header("host") + request.body);
      if (fcp::unpack_body(request, kMostBytes)) bodies.back() += " damaged";
      if (request.body.size() > kMostBytes) std::abort();
      state = reader.take_next();
    }
    if (state == State::kWrong) break;
  }
  return bodies;
}

void read_messages(std::string_view body, std::optional<size_t> head) {
  try {
    const fcp::TensorRequest request = fcp::parse_tensor_request(body, head, {.rows = 64});
    if (request.inputs.empty()) std::abort();
  } catch (const fcp::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t piece = 1 + data[0] % 64;
  if (bodies_in(bytes, piece) != bodies_in(bytes, bytes.size() + 1)) std::abort();
  read_messages(bytes, std::nullopt);
  read_messages(bytes, size_t{data[1]} * 4);
  try {
    fcp::parse_feedback(bytes, {"a", "b"}, 100);
  } catch (const fcp::Error&) {
  }
  return 0;
}

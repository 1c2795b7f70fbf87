// HTTP/1.1 messages: a request read from bytes as they come, and a response as bytes.
//
// What is understood: request line, headers, a body of Content-Length bytes, keep-alive,
// pipelining, Expect: 100-continue. Bodies in chunks or packed are refused (411, 415). All sizes
// are bounded before anything is kept.
//
// Reference: RFC 9112. Tested by tests/server/http_message_test.cc and fuzz/fuzz_request.cc.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace fcp {

struct HttpRequest {
  std::string method;
  std::string path;                            // decoded, without what follows '?'
  std::string query;                           // as it came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool keep_alive = true;

  // The value of a header, by its name in lower case; "" where there is none.
  std::string header(const std::string& name) const;
};

struct HttpLimits {
  size_t head = 16 * 1024;         // bytes of request line and headers
  size_t body = 64 * 1024 * 1024;  // bytes
};

class HttpReader {
 public:
  explicit HttpReader(const HttpLimits& limits) : limits_(limits) {}

  enum class State { kMore, kRequest, kWrong };

  // Takes bytes as they came. kRequest: `request` is whole; bytes after it are kept for take_next.
  State feed(std::string_view bytes);
  // The request, after kRequest; then looks at what was kept, as feed does.
  HttpRequest take() { return std::move(request_); }
  State take_next() { return feed({}); }

  // After kWrong: the status to answer with, and a sentence.
  int status() const { return status_; }
  const std::string& complaint() const { return complaint_; }

  // Whether a client waits for "100 Continue"; true once per request.
  bool wants_continue();
  size_t buffered() const { return buffer_.size(); }
  // Whether a request has begun and is not whole.
  bool in_request() const { return !buffer_.empty() || head_done_; }

 private:
  State wrong(int status, std::string complaint);
  State read_head(size_t end);
  bool read_request_line(std::string_view line);
  bool read_header(std::string_view line);
  State check_head();

  HttpLimits limits_;
  std::string buffer_;
  HttpRequest request_;
  bool head_done_ = false;
  bool continue_ = false;
  size_t body_size_ = 0;
  int status_ = 0;
  std::string complaint_;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::map<std::string, std::string> headers = {};  // further ones
};

std::string http_text(const HttpResponse& response, bool keep_alive);

// {"error": "…"}, as the Open Inference Protocol has it.
HttpResponse error_response(int status, const std::string& message);

}  // namespace fcp

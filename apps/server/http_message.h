// HTTP/1.1 messages: a request read from bytes as they come, and a response as bytes.
//
// What is understood: request line (origin-form, absolute-form, and "*"), headers, a body of
// Content-Length bytes or in chunks, keep-alive, pipelining, Expect: 100-continue; bodies may be
// compressed (gzip, deflate), and are unpacked by unpack_body. Whatever two readers could
// understand differently is refused: two lengths, a length beside chunks, another coding of the
// transfer than "chunked", no or several Hosts, lines that end without CR. All sizes are bounded
// before anything is kept, and reading takes time linear in the bytes.
//
// Reference: RFC 9110, RFC 9112. Tested by tests/server/http_message_test.cc, http_cases_test.cc
// and fuzz/fuzz_request.cc.
#pragma once

#include <cstddef>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "apps/server/workers.h"

namespace fcp {

struct HttpRequest {
  std::string method;
  std::string path;                            // decoded, without what follows '?'
  std::string query;                           // as it came
  std::map<std::string, std::string> headers;  // names in lower case; several as one list
  std::string body;
  bool keep_alive = true;
  std::string client{};                  // its address; given by the server
  std::shared_ptr<Deadline> deadline{};  // of its answer; given by the server

  // The value of a header, by its name in lower case; "" where there is none.
  std::string header(const std::string& name) const;
  // Whether it asks for something, as GET does, and changes nothing.
  bool reads() const { return method == "GET" || method == "HEAD"; }
};

struct HttpLimits {
  size_t head = 16 * 1024;        // bytes of request line and headers
  size_t body = 8 * 1024 * 1024;  // bytes, packed and unpacked
};

class HttpReader {
 public:
  explicit HttpReader(const HttpLimits& limits) : limits_(limits) {}

  enum class State { kMore, kRequest, kWrong };

  // Takes bytes as they came. kRequest: `request` is whole; bytes after it are kept for take_next.
  State feed(std::string_view bytes);
  // The request, after kRequest; then looks at what was kept, as feed does.
  HttpRequest take() { return std::exchange(request_, {}); }
  State take_next() { return feed({}); }

  // After kWrong: the status to answer with, and a sentence.
  int status() const { return status_; }
  const std::string& complaint() const { return complaint_; }

  // Whether a client waits for "100 Continue"; true once per request.
  bool wants_continue();
  size_t buffered() const { return buffer_.size() - at_ + request_.body.size(); }
  // Whether a request has begun and is not whole.
  bool in_request() const { return at_ < buffer_.size() || part_ != Part::kHead; }

 private:
  enum class Part { kHead, kBody, kChunkSize, kChunk, kChunkEnd, kTrailers };

  State read();
  State wrong(int status, std::string complaint);
  State read_head();
  State skip_empty_lines();
  std::optional<size_t> find_head_end();
  State read_head_lines(std::string_view head);
  bool read_request_line(std::string_view line);
  bool read_target(std::string_view target);
  bool read_header(std::string_view line);
  State check_head();
  State check_host();
  State check_length();
  State check_encodings();
  State read_body();
  size_t add_to_body(std::string_view bytes);
  State read_chunk_size();
  State read_trailers();
  std::optional<std::string_view> take_line(size_t longest);
  State finish();

  HttpLimits limits_;
  std::string buffer_;
  size_t at_ = 0;      // what is before has been read
  size_t looked_ = 0;  // how far the end of the head was looked for
  HttpRequest request_;
  std::string authority_;  // of a target in absolute-form
  Part part_ = Part::kHead;
  bool continue_ = false;
  size_t hosts_ = 0, lengths_ = 0, transfer_encodings_ = 0;
  size_t left_ = 0;     // bytes of the body, or of the chunk, that are still to come
  size_t framing_ = 0;  // bytes between chunks, behind the last one, or between requests
  int status_ = 0;
  std::string complaint_;
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::map<std::string, std::string> headers = {};  // further ones
};

// Status line and headers, with the empty line.
std::string http_head(const HttpResponse& response, bool keep_alive, std::time_t now);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(std::time_t time);

HttpResponse json_response(const nlohmann::ordered_json& json);

// {"error": "…"}, as the Open Inference Protocol has it.
HttpResponse error_response(int status, const std::string& message);

// 405, with the methods that are taken, as "GET, HEAD".
HttpResponse not_allowed(const std::string& methods);

// The refusal of what a page of another site can make a browser send without asking the server
// first; none: it is no such request.
std::optional<HttpResponse> foreign_page_response(const HttpRequest& request);

// Unpacks a body with Content-Encoding; an answer where it is damaged or has more than `most`
// bytes.
std::optional<HttpResponse> unpack_body(HttpRequest& request, size_t most);

}  // namespace fcp

#include "apps/server/http_message.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kMostHeaders = 100;

std::string lower_case_of(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// %41 → A; false where a per cent sign is not followed by two digits, or a NUL comes out.
bool decode_path(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return false;
      const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return false;
    out += c;
  }
  return true;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return status < 500 ? "Error" : "Internal Server Error";
  }
}

}  // namespace

std::string HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpReader::State HttpReader::wrong(int status, std::string complaint) {
  status_ = status;
  complaint_ = std::move(complaint);
  return State::kWrong;
}

HttpReader::State HttpReader::feed(std::string_view bytes) {
  if (status_ != 0) return State::kWrong;
  buffer_ += bytes;
  if (!head_done_) {
    while (buffer_.starts_with("\r\n")) buffer_.erase(0, 2);  // between requests; RFC 9112, 2.2
    const size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos || end > limits_.head) {
      if (buffer_.size() > limits_.head + 4) {
        return wrong(431, concat("the headers are longer than ", limits_.head, " bytes"));
      }
      return State::kMore;
    }
    if (read_head(end) == State::kWrong) return State::kWrong;
  }
  if (buffer_.size() < body_size_) return State::kMore;
  if (buffer_.size() == body_size_) {
    request_.body = std::move(buffer_);
    buffer_.clear();
  } else {
    request_.body = buffer_.substr(0, body_size_);
    buffer_.erase(0, body_size_);
  }
  head_done_ = continue_ = false;
  body_size_ = 0;
  return State::kRequest;
}

HttpReader::State HttpReader::read_head(size_t end) {
  request_ = {};
  const std::string head = buffer_.substr(0, end);
  buffer_.erase(0, end + 4);
  size_t from = 0;
  for (size_t lines = 0; from <= head.size(); ++lines) {
    const size_t to = std::min(head.find("\r\n", from), head.size());
    const std::string_view line = std::string_view(head).substr(from, to - from);
    if (lines > kMostHeaders) return wrong(431, "there are too many headers");
    if (lines == 0 ? !read_request_line(line) : !read_header(line)) {
      return status_ == 0 ? wrong(400, "the request is not HTTP") : State::kWrong;
    }
    from = to + 2;
  }
  return check_head();
}

bool HttpReader::read_request_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  request_.method = line.substr(0, first);
  if (!is_token(request_.method) || !target.starts_with('/')) return false;
  if (target.find(' ') != std::string_view::npos) return false;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    wrong(505, "the version of HTTP is not 1.0 or 1.1");
    return false;
  }
  request_.keep_alive = version == "HTTP/1.1";
  const size_t mark = std::min(target.find('?'), target.size());
  if (mark < target.size()) request_.query = target.substr(mark + 1);
  return decode_path(target.substr(0, mark), request_.path);
}

bool HttpReader::read_header(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
  const std::string name = lower_case_of(line.substr(0, colon));
  const std::string value(trimmed(line.substr(colon + 1)));
  const bool control = std::any_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) < 32 && c != '\t';
  });
  if (control) return false;
  const auto [entry, fresh] = request_.headers.emplace(name, value);
  if (!fresh && name == "content-length" && entry->second != value) return false;
  return true;
}

HttpReader::State HttpReader::check_head() {
  if (!request_.header("transfer-encoding").empty()) {
    return wrong(411, "a body in chunks is not understood; send Content-Length");
  }
  const std::string packed = lower_case_of(request_.header("content-encoding"));
  if (!packed.empty() && packed != "identity") {
    return wrong(415, concat("the Content-Encoding '", packed, "' is not understood"));
  }
  const std::string length = request_.header("content-length");
  body_size_ = 0;
  if (!length.empty()) {
    const auto [end, error] =
        std::from_chars(length.data(), length.data() + length.size(), body_size_);
    if (error != std::errc() || end != length.data() + length.size()) {
      return error == std::errc::result_out_of_range ? wrong(413, "the body is too large")
                                                     : wrong(400, "Content-Length is not a number");
    }
  }
  if (body_size_ > limits_.body) {
    return wrong(
        413, concat("the body has ", body_size_, " bytes, at most ", limits_.body, " are taken"));
  }
  const std::string connection = lower_case_of(request_.header("connection"));
  if (connection == "close") request_.keep_alive = false;
  if (connection == "keep-alive") request_.keep_alive = true;
  continue_ = lower_case_of(request_.header("expect")) == "100-continue";
  head_done_ = true;
  return State::kMore;
}

bool HttpReader::wants_continue() { return std::exchange(continue_, false) && head_done_; }

std::string http_text(const HttpResponse& response, bool keep_alive) {
  std::string text =
      concat("HTTP/1.1 ", response.status, " ", reason_of(response.status),
             "\r\nContent-Type: ", response.type, "\r\nContent-Length: ", response.body.size(),
             "\r\nConnection: ", keep_alive ? "keep-alive" : "close", "\r\n");
  for (const auto& [name, value] : response.headers) text += concat(name, ": ", value, "\r\n");
  text += "\r\n";
  return text + response.body;
}

HttpResponse error_response(int status, const std::string& message) {
  const nlohmann::json json = {{"error", message}};
  return {.status = status,
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

}  // namespace fcp

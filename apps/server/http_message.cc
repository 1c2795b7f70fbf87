#include "apps/server/http_message.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "fcp/base/error.h"

namespace fcp {
namespace {

constexpr size_t kMostHeaders = 100;
constexpr size_t kLongestChunkLine = 256;  // the size of a chunk, with extensions

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

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 32 && c != '\t') || c == 127;
  });
}

// What may stand in the authority of a URL: no blank, comma, slash or "@".
bool is_host(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~%!$&'()*+;=:[]").find(c) != std::string_view::npos;
  });
}

// The entries of a list with commas, in lower case.
std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> entries;
  for (size_t from = 0; from <= list.size();) {
    const size_t to = std::min(list.find(',', from), list.size());
    entries.push_back(lower_case_of(trimmed(std::string_view(list).substr(from, to - from))));
    from = to + 1;
  }
  return entries;
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
  const bool in_body = part_ == Part::kBody || part_ == Part::kChunk;
  if (in_body && at_ == buffer_.size()) bytes.remove_prefix(add_to_body(bytes));
  if (!bytes.empty()) {
    buffer_.erase(0, at_);
    looked_ -= std::min(looked_, at_);
    at_ = 0;
    buffer_ += bytes;
  }
  const State state = read();
  if (at_ == buffer_.size()) {  // an idle connection keeps no memory
    std::string().swap(buffer_);
    at_ = looked_ = 0;
  }
  return state;
}

HttpReader::State HttpReader::read() {
  while (true) {
    const Part before = part_;
    const size_t at = at_;
    State state = State::kMore;
    switch (part_) {
      case Part::kHead:
        state = read_head();
        break;
      case Part::kBody:
      case Part::kChunk:
        state = read_body();
        break;
      case Part::kChunkSize:
      case Part::kChunkEnd:
        state = read_chunk_size();
        break;
      case Part::kTrailers:
        state = read_trailers();
        break;
    }
    if (state != State::kMore || (part_ == before && at_ == at)) return state;
  }
}

// Between requests; RFC 9112, 2.2.
HttpReader::State HttpReader::skip_empty_lines() {
  const size_t first = at_;
  while (buffer_.compare(at_, 2, "\r\n") == 0) at_ += 2;
  framing_ += at_ - first;
  if (framing_ > limits_.head) return wrong(400, "there are too many empty lines");
  return State::kMore;
}

// Where the empty line begins; wrong() where a line ends without CR.
std::optional<size_t> HttpReader::find_head_end() {
  for (looked_ = std::max(looked_, at_);; ++looked_) {
    looked_ = buffer_.find('\n', looked_);
    if (looked_ == std::string::npos) break;
    if (looked_ == at_ || buffer_[looked_ - 1] != '\r') {
      wrong(400, "a line does not end with CR LF");
      return std::nullopt;
    }
    if (looked_ >= at_ + 3 && buffer_[looked_ - 2] == '\n') return looked_ - 3;
  }
  looked_ = buffer_.size();
  return std::nullopt;
}

HttpReader::State HttpReader::read_head() {
  if (skip_empty_lines() == State::kWrong) return State::kWrong;
  const std::optional<size_t> end = find_head_end();
  if (status_ != 0) return State::kWrong;
  if (!end || *end - at_ > limits_.head) {
    if (!end && buffer_.size() - at_ <= limits_.head + 4) return State::kMore;
    return wrong(431, concat("the headers are longer than ", limits_.head, " bytes"));
  }
  const std::string head = buffer_.substr(at_, *end - at_);
  at_ = *end + 4;
  return read_head_lines(head);
}

HttpReader::State HttpReader::read_head_lines(std::string_view head) {
  request_ = {};
  authority_.clear();
  hosts_ = lengths_ = transfer_encodings_ = framing_ = left_ = 0;
  size_t from = 0;
  for (size_t lines = 0; from <= head.size(); ++lines) {
    const size_t to = std::min(head.find("\r\n", from), head.size());
    const std::string_view line = head.substr(from, to - from);
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
  const bool printable = std::all_of(target.begin(), target.end(), [](char c) {
    return static_cast<unsigned char>(c) > 32 && c != 127;
  });
  if (!is_token(request_.method) || !printable) return false;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    wrong(505, "the version of HTTP is not 1.0 or 1.1");
    return false;
  }
  request_.keep_alive = version == "HTTP/1.1";
  if (target == "*" && request_.method == "OPTIONS") {
    request_.path = "*";
    return true;
  }
  return read_target(target);
}

// "/path?query" or "http://host/path?query".
bool HttpReader::read_target(std::string_view target) {
  const std::string scheme = lower_case_of(target.substr(0, 8));
  for (const std::string_view known : {"http://", "https://"}) {
    if (!scheme.starts_with(known)) continue;
    target.remove_prefix(known.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    authority_ = target.substr(0, end);
    if (authority_.empty() || !is_host(authority_)) return false;
    target.remove_prefix(end);
    if (target.empty()) {
      request_.path = "/";
      return true;
    }
    if (target[0] == '?') request_.path = "/";
    break;
  }
  const size_t mark = std::min(target.find('?'), target.size());
  if (mark < target.size()) request_.query = target.substr(mark + 1);
  if (request_.path == "/") return true;
  return target.starts_with('/') && decode_path(target.substr(0, mark), request_.path);
}

bool HttpReader::read_header(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
  const std::string name = lower_case_of(line.substr(0, colon));
  const std::string value(trimmed(line.substr(colon + 1)));
  if (has_control(value)) return false;
  if (name == "host") ++hosts_;
  if (name == "content-length") ++lengths_;
  if (name == "transfer-encoding") ++transfer_encodings_;
  const auto [entry, fresh] = request_.headers.emplace(name, value);
  if (!fresh) entry->second += ", " + value;
  return true;
}

HttpReader::State HttpReader::check_head() {
  const bool newer = request_.keep_alive;  // HTTP/1.1
  if (check_host() == State::kWrong || check_length() == State::kWrong ||
      check_encodings() == State::kWrong) {
    return State::kWrong;
  }
  const std::vector<std::string> connection = entries_of(request_.header("connection"));
  for (const std::string& entry : connection) {
    if (entry == "keep-alive") request_.keep_alive = true;
  }
  for (const std::string& entry : connection) {
    if (entry == "close") request_.keep_alive = false;
  }
  const std::string expected = lower_case_of(request_.header("expect"));
  if (newer && !expected.empty() && expected != "100-continue") {
    return wrong(417, "the only expectation that is understood is 100-continue");
  }
  if (part_ == Part::kHead && left_ == 0) return finish();
  if (part_ == Part::kHead) part_ = Part::kBody;
  continue_ = newer && expected == "100-continue";
  return State::kMore;
}

HttpReader::State HttpReader::check_host() {
  const bool newer = request_.keep_alive;
  if (hosts_ > 1 || (newer && hosts_ == 0)) {
    return wrong(400, concat("found ", hosts_, " Host headers, expected one"));
  }
  if (!is_host(request_.header("host"))) return wrong(400, "the Host is none");
  if (!authority_.empty()) request_.headers["host"] = authority_;
  return State::kMore;
}

HttpReader::State HttpReader::check_length() {
  if (transfer_encodings_ > 0) {
    if (lengths_ > 0) return wrong(400, "found Content-Length beside Transfer-Encoding");
    const std::string coding = lower_case_of(request_.header("transfer-encoding"));
    const bool other = transfer_encodings_ == 1 && coding.ends_with("chunked") && coding.size() > 7;
    if (other) return wrong(501, "the only Transfer-Encoding that is understood is chunked");
    if (transfer_encodings_ > 1 || coding != "chunked" || !request_.keep_alive) {
      return wrong(400, "expected the Transfer-Encoding chunked, once, in HTTP/1.1");
    }
    part_ = Part::kChunkSize;
    return State::kMore;
  }
  if (lengths_ == 0) return State::kMore;
  const std::string length = request_.header("content-length");
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), left_);
  if (error == std::errc::result_out_of_range) return wrong(413, "the body is too large");
  if (lengths_ > 1 || error != std::errc() || end != length.data() + length.size()) {
    return wrong(400, "expected one Content-Length, a number");
  }
  if (left_ > limits_.body) {
    return wrong(413,
                 concat("the body has ", left_, " bytes, at most ", limits_.body, " are taken"));
  }
  return State::kMore;
}

HttpReader::State HttpReader::check_encodings() {
  const auto found = request_.headers.find("content-encoding");
  if (found == request_.headers.end()) return State::kMore;
  const std::string packed = lower_case_of(found->second);
  if (packed.empty() || packed == "identity") {
    request_.headers.erase(found);
  } else if (packed != "gzip" && packed != "x-gzip" && packed != "deflate") {
    return wrong(415, concat("the Content-Encoding '", packed,
                             "' is not understood; send gzip, deflate or none"));
  }
  return State::kMore;
}

// How many of the bytes are of the body, or of the chunk. Who has sent much of a large body gets
// the room for all of it, so that it is not copied as it grows.
size_t HttpReader::add_to_body(std::string_view bytes) {
  constexpr size_t kMuch = size_t{1} << 20;
  const size_t count = std::min(left_, bytes.size());
  std::string& body = request_.body;
  if (part_ == Part::kBody && body.size() >= kMuch) body.reserve(body.size() + left_);
  body.append(bytes.substr(0, count));
  left_ -= count;
  return count;
}

HttpReader::State HttpReader::read_body() {
  at_ += add_to_body(std::string_view(buffer_).substr(at_));
  if (left_ > 0) return State::kMore;
  if (part_ == Part::kBody) return finish();
  part_ = Part::kChunkEnd;
  return State::kMore;
}

// A line without its end, where it is whole. wrong() where it is too long or ends without CR.
std::optional<std::string_view> HttpReader::take_line(size_t longest) {
  const size_t end = buffer_.find('\n', at_);
  const size_t size = std::min(end, buffer_.size()) - at_;
  if (size > longest + 1) wrong(400, "a line between chunks is too long");
  if (end == std::string::npos || status_ != 0) return std::nullopt;
  if (size == 0 || buffer_[end - 1] != '\r') {
    wrong(400, "a line does not end with CR LF");
    return std::nullopt;
  }
  const std::string_view line = std::string_view(buffer_).substr(at_, size - 1);
  at_ = end + 1;
  framing_ += size + 1;
  // Chunks of a byte each have five bytes around it; much more is a client that only costs time.
  if (framing_ > limits_.head + 16 * request_.body.size()) {
    wrong(400, "there is more between the chunks than in them");
    return std::nullopt;
  }
  return line;
}

// The line before a chunk, and the empty one behind it.
HttpReader::State HttpReader::read_chunk_size() {
  const std::optional<std::string_view> line = take_line(kLongestChunkLine);
  if (!line) return status_ == 0 ? State::kMore : State::kWrong;
  if (part_ == Part::kChunkEnd) {
    part_ = Part::kChunkSize;
    return line->empty() ? State::kMore : wrong(400, "a chunk is longer than its size says");
  }
  const char* last = line->data() + line->size();
  const auto [end, error] = std::from_chars(line->data(), last, left_, 16);
  const std::string_view rest(end, static_cast<size_t>(last - end));
  if (error == std::errc::result_out_of_range) return wrong(413, "the body is too large");
  const bool extended = trimmed(rest).starts_with(';') && !has_control(rest);
  if (error != std::errc() || (!rest.empty() && !extended)) {
    return wrong(400, "the size of a chunk is not a hexadecimal number");
  }
  if (left_ > limits_.body - request_.body.size()) {
    return wrong(413, concat("the body has more than ", limits_.body, " bytes"));
  }
  part_ = left_ == 0 ? Part::kTrailers : Part::kChunk;
  return State::kMore;
}

// Headers behind the last chunk are read and forgotten.
HttpReader::State HttpReader::read_trailers() {
  const std::optional<std::string_view> line = take_line(limits_.head);
  if (!line) return status_ == 0 ? State::kMore : State::kWrong;
  if (line->empty()) return finish();
  const size_t colon = line->find(':');
  if (colon == std::string_view::npos || !is_token(line->substr(0, colon))) {
    return wrong(400, "what follows the last chunk are no headers");
  }
  return State::kMore;
}

HttpReader::State HttpReader::finish() {
  part_ = Part::kHead;
  continue_ = false;
  framing_ = 0;
  return State::kRequest;
}

bool HttpReader::wants_continue() {
  return std::exchange(continue_, false) && part_ != Part::kHead && at_ == buffer_.size();
}

}  // namespace fcp

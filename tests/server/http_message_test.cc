#include "apps/server/http_message.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/support/files.h"

namespace fcp {
namespace {

using State = HttpReader::State;

int status_of(std::string_view bytes, const HttpLimits& limits = {}) {
  HttpReader reader(limits);
  return reader.feed(bytes) == State::kWrong ? reader.status() : 0;
}

TEST(HttpReader, ReadsARequest) {
  HttpReader reader({});
  ASSERT_EQ(reader.feed("POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-LENGTH:  3 \r\n\r\nabc"),
            State::kRequest);
  const HttpRequest request = reader.take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(request.query, "x=1");
  EXPECT_EQ(request.header("content-length"), "3");
  EXPECT_EQ(request.body, "abc");
  EXPECT_TRUE(request.keep_alive);
  EXPECT_EQ(reader.take_next(), State::kMore);
  EXPECT_FALSE(reader.in_request());
}

// The same requests whatever the pieces are in which they come.
TEST(HttpReader, DoesNotDependOnPieces) {
  const std::string two =
      "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\r\nGET /2 HTTP/1.0\r\n\r\n";
  for (size_t piece = 1; piece <= two.size(); ++piece) {
    HttpReader reader({});
    std::vector<HttpRequest> found;
    for (size_t at = 0; at < two.size(); at += piece) {
      State state = reader.feed(std::string_view(two).substr(at, piece));
      while (state == State::kRequest) {
        found.push_back(reader.take());
        state = reader.take_next();
      }
      ASSERT_NE(state, State::kWrong);
    }
    ASSERT_EQ(found.size(), 2u) << piece;
    EXPECT_EQ(found[0].body, "hello");
    EXPECT_EQ(found[1].path, "/2");
    EXPECT_FALSE(found[1].keep_alive);
  }
}

// As it comes, without another copy of it, and what follows it is kept.
TEST(HttpReader, ReadsALargeBody) {
  constexpr size_t kSize = 3 << 20, kPiece = 65536;
  const std::string head =
      concat("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: ", kSize, "\r\n\r\n");
  const std::string body(kSize, 'x'), next = "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string all = head + body + next;
  HttpReader reader({});
  State state = State::kMore;
  for (size_t at = 0; at < all.size(); at += kPiece) {
    ASSERT_EQ(state, State::kMore);
    state = reader.feed(std::string_view(all).substr(at, kPiece));
    ASSERT_EQ(reader.buffered(), std::min(at + kPiece, all.size()) - head.size());
  }
  ASSERT_EQ(state, State::kRequest);
  EXPECT_EQ(reader.take().body, body);
  ASSERT_EQ(reader.take_next(), State::kRequest);
  EXPECT_EQ(reader.take().path, "/2");
}

TEST(HttpReader, KeepsToItsLimits) {
  const HttpLimits small{.head = 100, .body = 10};
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n", small), 413);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(200, 'x'), small), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(200, 'x') + "\r\n\r\n", small), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) many += "A: 1\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(chunked + "5\r\nhello\r\n6\r\n", small), 413);
  EXPECT_EQ(status_of(chunked + "ffffffffffffffff\r\n", small), 413);
  EXPECT_EQ(status_of(chunked + "1;" + std::string(300, 'x')), 400);
  std::string padded = chunked;  // a byte, and 200 about it
  for (int i = 0; i < 1000; ++i) padded += "1;" + std::string(200, 'x') + "\r\ny\r\n";
  EXPECT_EQ(status_of(padded), 400);
}

// Empty lines between requests are skipped in linear time: 16 KiB of them at once took seconds when
// each moved what followed. Endless ones are refused.
TEST(HttpReader, SkipsEmptyLines) {
  std::string empty;
  while (empty.size() < 16'000) empty += "\r\n";
  for (const size_t piece : {size_t{1}, size_t{3}, empty.size()}) {
    HttpReader reader({});
    for (size_t at = 0; at < empty.size(); at += piece) {
      ASSERT_EQ(reader.feed(std::string_view(empty).substr(at, piece)), State::kMore);
    }
    EXPECT_FALSE(reader.in_request());
    EXPECT_EQ(reader.feed("GET / HTTP/1.0\r\n\r\n"), State::kRequest);
  }
  EXPECT_EQ(status_of(empty + empty), 400);
}

TEST(UnpackBody, ReadsGzipAndDeflate) {
  const std::string text(300'000, 'a');
  for (const auto& [name, format] : {std::pair{"gzip", 31}, std::pair{"deflate", 15}}) {
    HttpRequest request;
    request.headers["content-encoding"] = name;
    const std::string whole = packed(text, format);
    request.body = whole;
    EXPECT_FALSE(unpack_body(request, text.size()));
    EXPECT_EQ(request.body, text);
    request.body = whole;
    EXPECT_EQ(unpack_body(request, text.size() - 1)->status, 413);
    for (const std::string& damaged : {whole.substr(0, whole.size() - 1), whole + "x",
                                       std::string("nothing"), std::string("\x1f\x8b")}) {
      request.body = damaged;
      EXPECT_EQ(unpack_body(request, text.size())->status, 400);
    }
  }
  HttpRequest two;
  two.headers["content-encoding"] = "gzip";
  two.body = gzipped("a") + gzipped("b");
  EXPECT_FALSE(unpack_body(two, 10));
  EXPECT_EQ(two.body, "ab");
}

TEST(HttpReader, TellsWhoWaitsToContinue) {
  HttpReader reader({});
  EXPECT_EQ(
      reader.feed("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"),
      State::kMore);
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
  EXPECT_EQ(reader.feed("x"), State::kRequest);
}

TEST(HttpResponse, IsWrittenWithItsLength) {
  EXPECT_EQ(http_head({.status = 404, .body = "no", .headers = {{"X-A", "b"}}}, false, 784111777),
            "HTTP/1.1 404 Not Found\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n"
            "X-A: b\r\n\r\n");
  EXPECT_EQ(error_response(400, "a \"b\"\xff").body, "{\"error\":\"a \\\"b\\\"\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace fcp

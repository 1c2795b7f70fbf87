#include "apps/server/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcp {
namespace {

using State = HttpReader::State;
using ::testing::HasSubstr;

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
      "POST /1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\r\nGET /2 HTTP/1.0\r\n\r\n";
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

TEST(HttpReader, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(status_of("nonsense\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET x HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET /%zz HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /%00 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nname : x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 411);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n"), 415);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 413);
}

TEST(HttpReader, KeepsToItsLimits) {
  const HttpLimits small{.head = 100, .body = 10};
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n", small), 413);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(200, 'x'), small), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + std::string(200, 'x') + "\r\n\r\n", small), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) many += "A: 1\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431);
}

TEST(HttpReader, TellsWhoWaitsToContinue) {
  HttpReader reader({});
  EXPECT_EQ(reader.feed("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"),
            State::kMore);
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
  EXPECT_EQ(reader.feed("x"), State::kRequest);
}

TEST(HttpResponse, IsWrittenWithItsLength) {
  const std::string text =
      http_text({.status = 404, .body = "no", .headers = {{"X-A", "b"}}}, false);
  EXPECT_THAT(text, HasSubstr("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(text, HasSubstr("Content-Length: 2\r\nConnection: close\r\nX-A: b\r\n\r\nno"));
  EXPECT_EQ(error_response(400, "a \"b\"\xff").body, "{\"error\":\"a \\\"b\\\"\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace fcp

// Requests as bytes, and what RFC 9110 and RFC 9112 have a server answer: framing and its abuse
// (request smuggling), Host, targets, lists, chunks. Each is sent to a server whole, byte by byte
// to a reader, and before a request whose answer shows where the server believes it began.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fcp/base/error.h"

#include "tests/server/http_client.h"

namespace fcp {
namespace {

struct Case {
  const char* name;
  std::string bytes;
  int status;             // of the first answer
  std::string body = {};  // of an answer 200: path and body
};

std::string get(const std::string& lines, const std::string& target = "/") {
  return "GET " + target + " HTTP/1.1\r\n" + lines + "\r\n";
}

std::string post(const std::string& lines, const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + lines + "\r\n" + body;
}

std::string chunked(const std::string& body) {
  return post("Transfer-Encoding: chunked\r\n", body);
}

std::vector<Case> cases() {
  const std::string host = "Host: h\r\n";
  return {
      {"plain", get(host), 200, "/"},
      {"lower case names", "GET / HTTP/1.1\r\nhost: h\r\n\r\n", 200, "/"},
      {"empty lines before", "\r\n\r\n" + get(host), 200, "/"},
      {"no blank behind the colon", get("Host:h\r\n"), 200, "/"},
      {"an empty Host", get("Host:\r\n"), 200, "/"},
      {"a Host with port", get("Host: [::1]:8080\r\n"), 200, "/"},
      {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 200, "/"},
      {"an escaped target", get(host, "/a%20b?x=%zz"), 200, "/a b"},
      {"a target in absolute-form", get(host, "http://other/p?q"), 200, "/p"},
      {"an absolute-form without path", get(host, "HTTP://other"), 200, "/"},
      {"an absolute-form with a query alone", get(host, "http://other?x"), 200, "/"},
      {"OPTIONS of all", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 200, "*"},
      {"a body", post("Content-Length: 3\r\n", "abc"), 200, "/abc"},
      {"an empty body", post("Content-Length: 0\r\n", ""), 200, "/"},
      {"a body of GET", get(host + "Content-Length: 1\r\n") + "x", 200, "/x"},
      {"leading zeros of a length", post("Content-Length: 003\r\n", "abc"), 200, "/abc"},
      {"chunks", chunked("3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"), 200,
       "/abc0123456789abcdef"},
      {"no chunk", chunked("0\r\n\r\n"), 200, "/"},
      {"hexadecimal digits", chunked("A\r\n0123456789\r\n000\r\n\r\n"), 200, "/0123456789"},
      {"extensions of chunks", chunked("3;a=b;c=\"d e\"\r\nabc\r\n0;x\r\n\r\n"), 200, "/abc"},
      {"trailers", chunked("1\r\na\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n"), 200, "/a"},
      {"Chunked", post("Transfer-Encoding: Chunked\r\n", "1\r\na\r\n0\r\n\r\n"), 200, "/a"},
      {"identity", post("Content-Encoding: identity\r\nContent-Length: 1\r\n", "a"), 200, "/a"},
      {"Expect with the body at once", post("Expect: 100-Continue\r\nContent-Length: 1\r\n", "a"),
       200, "/a"},
      {"an unknown method", "BREW / HTTP/1.1\r\n" + host + "\r\n", 200, "/"},
      {"an unknown header", get(host + "X-Y: \t z \r\n"), 200, "/"},
      {"bytes above 127 in a value", get(host + "X: \xc3\xa9\r\n"), 200, "/"},

      {"no Host", get(""), 400},
      {"two Hosts", get(host + "Host: i\r\n"), 400},
      {"the same Host twice", get(host + host), 400},
      {"a list of Hosts", get("Host: a, b\r\n"), 400},
      {"a Host with a path", get("Host: a/b\r\n"), 400},
      {"a Host with a user", get("Host: u@h\r\n"), 400},
      {"absolute-form and no Host", get("", "http://other/"), 400},
      {"absolute-form with a user", get(host, "http://u@other/"), 400},
      {"absolute-form without host", get(host, "http:///p"), 400},
      {"a target of another scheme", get(host, "ftp://h/"), 400},
      {"a target without slash", get(host, "p"), 400},
      {"GET of all", get(host, "*"), 400},
      {"CONNECT", "CONNECT h:1 HTTP/1.1\r\n" + host + "\r\n", 400},
      {"a tab in the request line", "GET\t/ HTTP/1.1\r\n" + host + "\r\n", 400},
      {"two blanks in the request line", "GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"a control character in the target", get(host, "/a\x01"), 400},
      {"no version", "GET /\r\n\r\n", 400},
      {"lower case version", "GET / http/1.1\r\n" + host + "\r\n", 505},
      {"HTTP/2", "GET / HTTP/2.0\r\n" + host + "\r\n", 505},
      {"HTTP/1.10", "GET / HTTP/1.10\r\n" + host + "\r\n", 505},
      {"an escaped NUL", get(host, "/%00"), 400},
      {"half an escape", get(host, "/%4"), 400},
      {"a line without colon", get(host + "what\r\n"), 400},
      {"a blank before the colon", get(host + "Content-Length : 3\r\n"), 400},
      {"a folded line", get(host + "A: b\r\n c\r\n"), 400},
      {"a blank before the first header", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      {"no name", get(host + ": x\r\n"), 400},
      {"lines that end with LF", "GET / HTTP/1.1\nHost: h\n\n", 400},
      {"one line that ends with LF", "GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", 400},
      {"a bare CR in a value", get(host + "A: b\rContent-Length: 3\r\n"), 400},
      {"a NUL in a value", get(host + std::string("A: b\0\r\n", 7)), 400},

      {"two lengths", post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"), 400},
      {"the same length twice", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"), 400},
      {"a list of lengths", post("Content-Length: 1, 1\r\n", "a"), 400},
      {"an empty length", post("Content-Length:\r\n", ""), 400},
      {"a length with a sign", post("Content-Length: +1\r\n", "a"), 400},
      {"a negative length", post("Content-Length: -1\r\n", "a"), 400},
      {"a hexadecimal length", post("Content-Length: 0x1\r\n", "a"), 400},
      {"a length beyond 64 bits", post("Content-Length: 99999999999999999999\r\n", ""), 413},
      {"a length beside chunks",
       post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
      {"chunks beside a length",
       post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"), 400},
      {"an empty Transfer-Encoding", post("Transfer-Encoding:\r\n", "0\r\n\r\n"), 400},
      {"an empty Transfer-Encoding and chunked",
       post("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
      {"an empty Transfer-Encoding and a length",
       post("Transfer-Encoding:\r\nContent-Length: 3\r\n", "abc"), 400},
      {"chunked twice",
       post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
      {"chunked not last", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), 400},
      {"chunked with a blank inside", post("Transfer-Encoding: chun ked\r\n", "0\r\n\r\n"), 400},
      {"another transfer coding", post("Transfer-Encoding: gzip, chunked\r\n", ""), 501},
      {"xchunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 501},
      {"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"a chunk without size", chunked("\r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk's size with a sign", chunked("+3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk's size with 0x", chunked("0x3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a blank before a chunk's size", chunked(" 3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a blank behind a chunk's size", chunked("3 \r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk that is longer", chunked("3\r\nabcd\r\n0\r\n\r\n"), 400},
      {"a chunk that is shorter", chunked("3\r\nab\r\n0\r\n\r\n"), 400},
      {"a chunk's size that ends with LF", chunked("3\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk that ends with LF", chunked("3\r\nabc\n0\r\n\r\n"), 400},
      {"a bare CR in an extension", chunked("3;\r\r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk beyond 64 bits", chunked("10000000000000003\r\nabc\r\n0\r\n\r\n"), 413},
      {"trailers that are none", chunked("0\r\nnothing\r\n\r\n"), 400},
      {"a folded trailer", chunked("0\r\nA: b\r\n c\r\n\r\n"), 400},
      {"an unknown content coding", post("Content-Encoding: br\r\nContent-Length: 1\r\n", "a"),
       415},
      {"two content codings", post("Content-Encoding: gzip, gzip\r\nContent-Length: 1\r\n", "a"),
       415},
      {"another expectation", post("Expect: more\r\nContent-Length: 1\r\n", "a"), 417},
  };
}

int status_by_byte(const std::string& bytes) {
  HttpReader reader({});
  for (const char byte : bytes) {
    const HttpReader::State state = reader.feed({&byte, 1});
    if (state != HttpReader::State::kMore) {
      return state == HttpReader::State::kRequest ? 200 : reader.status();
    }
  }
  return 0;
}

TEST(HttpCases, AnswersEach) {
  testing::RunningServer running({});
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    EXPECT_EQ(status_by_byte(one.bytes), one.status);
    const testing::ByteClient client(running.server().port());
    client.say(one.bytes + "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    const std::string heard = client.hear_all();
    EXPECT_THAT(heard, ::testing::StartsWith(concat("HTTP/1.1 ", one.status, " ")));
    if (one.status != 200) {  // nothing behind it is taken for a request
      EXPECT_EQ(heard.find("HTTP/1.1 ", 1), std::string::npos) << heard;
      EXPECT_THAT(heard, ::testing::HasSubstr("\r\nConnection: close\r\n"));
      continue;
    }
    const size_t first = heard.find("\r\n\r\n");
    EXPECT_EQ(heard.substr(first + 4, one.body.size()), one.body);
    if (one.bytes.find("HTTP/1.0") != std::string::npos) continue;
    EXPECT_EQ(heard.substr(first + 4 + one.body.size(), 9), "HTTP/1.1 ");
    EXPECT_THAT(heard, ::testing::EndsWith("\r\n\r\n/end"));
  }
}

// `Connection` is a list, in any case of letters; close is stronger.
TEST(HttpCases, ReadsConnectionAsAList) {
  const auto stays = [](const std::string& version, const std::string& lines) {
    HttpReader reader({});
    EXPECT_EQ(reader.feed("GET / HTTP/" + version + "\r\nHost: h\r\n" + lines + "\r\n"),
              HttpReader::State::kRequest);
    return reader.take().keep_alive;
  };
  EXPECT_TRUE(stays("1.1", ""));
  EXPECT_FALSE(stays("1.0", ""));
  EXPECT_FALSE(stays("1.1", "Connection: TE, Close\r\n"));
  EXPECT_FALSE(stays("1.1", "Connection: TE\r\nConnection: close\r\n"));
  EXPECT_FALSE(stays("1.1", "Connection: close, keep-alive\r\n"));
  EXPECT_TRUE(stays("1.0", "Connection: Keep-Alive, TE\r\n"));
  EXPECT_TRUE(stays("1.1", "Connection: closed\r\n"));
}

TEST(HttpCases, AbsoluteFormNamesTheHost) {
  HttpReader reader({});
  ASSERT_EQ(reader.feed(get("Host: h\r\n", "http://other:1/p")), HttpReader::State::kRequest);
  EXPECT_EQ(reader.take().header("host"), "other:1");
}

}  // namespace
}  // namespace fcp

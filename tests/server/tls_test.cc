#include "apps/server/tls.h"

#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fcp/base/error.h"

#include "apps/server/http_server.h"
#include "tests/server/test_certificate.h"
#include "tests/support/files.h"

namespace fcp {
namespace {

using ::testing::HasSubstr;

// A server with TLS in a thread; it answers with the length of the body, or with "/large" much.
class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    testing::write_certificate(folder_.path("cert.pem"), folder_.path("key.pem"));
    HttpOptions options;
    options.port = 0;
    options.certificate = folder_.path("cert.pem");
    options.key = folder_.path("key.pem");
    server_ = std::make_unique<HttpServer>(options, [](HttpRequest request, auto respond) {
      if (request.path == "/large") return respond({.body = std::string(5'000'000, 'x')});
      respond({.body = concat("length ", request.body.size())});
    });
    thread_ = std::thread([this] { server_->run([] {}); });
  }
  ~TlsTest() override {
    server_->drain();
    thread_.join();
  }

  int connected() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return socket;
  }

  Folder folder_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

class TlsClient {
 public:
  explicit TlsClient(int socket)
      : socket_(socket),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        session_(SSL_new(context_.get()), SSL_free) {
    SSL_set_fd(session_.get(), socket);
  }
  ~TlsClient() { ::close(socket_); }

  SSL* session() const { return session_.get(); }
  void say(const std::string& text) {
    EXPECT_EQ(SSL_write(session_.get(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
  }
  std::string hear(const std::string& until, size_t size) {
    std::string heard;
    char block[16384];
    while (heard.find(until) == std::string::npos || heard.size() < size) {
      const int count = SSL_read(session_.get(), block, sizeof block);
      if (count <= 0) break;
      heard.append(block, static_cast<size_t>(count));
    }
    return heard;
  }

 private:
  int socket_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> session_;
};

TEST_F(TlsTest, AnswersLargeAndSmall) {
  TlsClient client(connected());
  ASSERT_EQ(SSL_connect(client.session()), 1);
  EXPECT_GE(SSL_version(client.session()), TLS1_2_VERSION);
  const std::string body(1'000'000, 'y');
  for (int i = 0; i < 3; ++i) {
    client.say(
        concat("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
    EXPECT_THAT(client.hear("length 1000000", 0), HasSubstr("200 OK"));
  }
  client.say("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_GT(client.hear("xxx", 5'000'000).size(), 5'000'000u);
}

// Whoever gets hold of the key must not read what was recorded before.
TEST_F(TlsTest, AgreesOnKeysThatAreForgotten) {
  for (const auto& [suites, works] : {std::pair{"AES128-GCM-SHA256:AES256-GCM-SHA384", false},
                                      std::pair{"ECDHE-ECDSA-AES128-GCM-SHA256", true}}) {
    TlsClient client(connected());
    SSL_set_max_proto_version(client.session(), TLS1_2_VERSION);
    ASSERT_EQ(SSL_set_cipher_list(client.session(), suites), 1);
    EXPECT_EQ(SSL_connect(client.session()) == 1, works) << suites;
  }
}

TEST_F(TlsTest, ServesOthersWhileHandshakesAreSlow) {
  std::vector<int> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(connected());
  for (const int socket : silent) ::send(socket, "\x16\x03\x01", 3, MSG_NOSIGNAL);
  TlsClient client(connected());
  ASSERT_EQ(SSL_connect(client.session()), 1);
  client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.hear("length 0", 0), HasSubstr("200 OK"));
  for (const int socket : silent) ::close(socket);
}

TEST_F(TlsTest, ClosesOnThoseWhoSpeakPlainly) {
  const int socket = connected();
  ::send(socket, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 27, MSG_NOSIGNAL);
  char block[64];
  ssize_t count = 0;
  std::string heard;
  while ((count = ::recv(socket, block, sizeof block, 0)) > 0) {
    heard.append(block, static_cast<size_t>(count));
  }
  EXPECT_THAT(heard, ::testing::Not(HasSubstr("200 OK")));
  ::close(socket);
}

TEST_F(TlsTest, NamesAFileThatIsWrong) {
  const std::string wrong = folder_.write("wrong.pem", "nothing");
  const auto complaint = [&](const std::string& certificate, const std::string& key) {
    try {
      open_tls(certificate, key);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const std::string certificate = folder_.path("cert.pem");
  EXPECT_THAT(complaint(wrong, wrong), HasSubstr("wrong.pem: expected a certificate"));
  EXPECT_THAT(complaint(certificate, wrong),
              HasSubstr("wrong.pem: expected the certificate's key"));
  testing::write_certificate(folder_.path("other.pem"), folder_.path("other_key.pem"));
  EXPECT_THAT(complaint(certificate, folder_.path("other_key.pem")), HasSubstr("other_key.pem"));
}

}  // namespace
}  // namespace fcp

#include "apps/server/tls.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "fcp/base/error.h"

namespace fcp {
namespace {

struct FreeSession {
  void operator()(SSL* session) const { SSL_free(session); }
};

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

std::string tls_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

class OpenSslSession : public TlsSession {
 public:
  OpenSslSession(SSL_CTX* context, int socket) : session_(SSL_new(context)) {
    if (session_ == nullptr) fail("TLS: ", tls_reason());
    SSL_set_fd(session_.get(), socket);
    SSL_set_accept_state(session_.get());
  }
  // Says goodbye, without waiting for an answer.
  ~OpenSslSession() override {
    ERR_clear_error();
    if (!broken_ && SSL_is_init_finished(session_.get()) == 1) SSL_shutdown(session_.get());
    ERR_clear_error();
  }
  OpenSslSession(const OpenSslSession&) = delete;
  OpenSslSession& operator=(const OpenSslSession&) = delete;

  ssize_t read(char* bytes, size_t size) override {
    ERR_clear_error();
    const int most = static_cast<int>(std::min<size_t>(size, INT_MAX));
    return outcome(SSL_read(session_.get(), bytes, most));
  }
  ssize_t write(const char* bytes, size_t size) override {
    ERR_clear_error();
    const int most = static_cast<int>(std::min<size_t>(size, INT_MAX));
    return outcome(SSL_write(session_.get(), bytes, most));
  }
  bool blocked() const override { return blocked_; }
  bool wants_write() const override { return wants_write_; }

 private:
  ssize_t outcome(int result) {
    blocked_ = false;
    if (result > 0) return result;
    const int why = SSL_get_error(session_.get(), result);
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
      blocked_ = true;
      wants_write_ = why == SSL_ERROR_WANT_WRITE;
      errno = EAGAIN;
      return -1;
    }
    broken_ = true;  // after this nothing may be sent, not even a goodbye
    ERR_clear_error();
    errno = ECONNRESET;
    return -1;
  }

  std::unique_ptr<SSL, FreeSession> session_;
  bool blocked_ = false;
  bool wants_write_ = false;
  bool broken_ = false;
};

class OpenSslServer : public TlsServer {
 public:
  OpenSslServer(const std::string& certificate, const std::string& key)
      : context_(SSL_CTX_new(TLS_server_method())) {
    if (context_ == nullptr) fail("TLS: ", tls_reason());
    ERR_clear_error();
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    // Of TLS 1.2 the suites whose keys stay secret when the certificate's key gets known.
    if (SSL_CTX_set_cipher_list(context_.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
      fail("TLS: ", tls_reason());
    }
    SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    // Idle connections keep no buffers; what is written may be taken in parts.
    SSL_CTX_set_mode(context_.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                         SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()) != 1) {
      fail(certificate, ": expected a certificate in PEM: ", tls_reason());
    }
    if (SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
      fail(key, ": expected the certificate's key in PEM: ", tls_reason());
    }
    std::signal(SIGPIPE, SIG_IGN);
  }

  std::unique_ptr<TlsSession> accept(int socket) override {
    return std::make_unique<OpenSslSession>(context_.get(), socket);
  }

 private:
  std::unique_ptr<SSL_CTX, FreeContext> context_;
};

}  // namespace

std::unique_ptr<TlsServer> open_tls(const std::string& certificate, const std::string& key) {
  return std::make_unique<OpenSslServer>(certificate, key);
}

}  // namespace fcp

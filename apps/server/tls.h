// TLS for connections whose sockets do not block, by OpenSSL: version 1.3, or 1.2 with an
// ephemeral key exchange; the server's certificate alone.
// Tested by tests/server/tls_test.cc and tests/cli/test_serve.py.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <sys/types.h>

namespace fcp {

// One connection. The handshake happens within the first calls.
class TlsSession {
 public:
  virtual ~TlsSession() = default;
  // As recv and send: bytes, 0 at the end, or −1 with errno, which is EAGAIN where the call must be
  // made again once wants_write() or else reading is possible.
  virtual ssize_t read(char* bytes, size_t size) = 0;
  virtual ssize_t write(const char* bytes, size_t size) = 0;
  // Whether the last call ended with EAGAIN, and what it waits for.
  virtual bool blocked() const = 0;
  virtual bool wants_write() const = 0;
};

class TlsServer {
 public:
  virtual ~TlsServer() = default;
  // Of a socket that was accepted, which must outlive the session.
  virtual std::unique_ptr<TlsSession> accept(int socket) = 0;
};

// Files in PEM: the certificate with those that lead to its root, and its key. An Error names the
// file; so it does where fcp was built without OpenSSL's libssl. A client that goes away while it
// is written to must not end the process: SIGPIPE is ignored from here on.
std::unique_ptr<TlsServer> open_tls(const std::string& certificate, const std::string& key);

}  // namespace fcp

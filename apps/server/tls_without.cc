// Where fcp was built without OpenSSL's libssl.
#include "fcp/base/error.h"

#include "apps/server/tls.h"

namespace fcp {

std::unique_ptr<TlsServer> open_tls(const std::string& certificate, const std::string&) {
  fail(certificate, ": this fcp was built without TLS (libssl-dev)");
}

}  // namespace fcp

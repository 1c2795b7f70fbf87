// The socket that a server listens on.
// Tested by tests/server/http_server_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fcp {

// Port 0: any that is free. An Error says why that cannot be.
int listen_on(const std::string& host, uint16_t port);

uint16_t port_of(int socket);

// As many connections as this process may have open, up to `wanted`; some are for files. Raises the
// limit of the process as far as it may.
size_t possible_connections(size_t wanted);

}  // namespace fcp

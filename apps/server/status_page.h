// The page at / of the server: live coverage, evidence of change, sizes, a form to try a row.
// One file without anything from elsewhere; it asks /status and the infer route of its own server.
// Tested by tests/cli/test_serve.py.
#pragma once

#include <string>

namespace fcp {

std::string status_page();

}  // namespace fcp

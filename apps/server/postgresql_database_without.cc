// Where fcp was built without libpq.
#include "fcp/base/error.h"

#include "apps/server/sql_database.h"

namespace fcp {

std::unique_ptr<SqlDatabase> open_postgresql(const std::string&) {
  fail("postgresql: this fcp was built without libpq (libpq-dev)");
}

}  // namespace fcp

// Where fcp was built without SQLite.
#include "fcp/base/error.h"

#include "apps/server/sql_database.h"

namespace fcp {

std::unique_ptr<SqlDatabase> open_sqlite(const std::string& folder, bool) {
  fail(folder, ": this fcp was built without SQLite (libsqlite3-dev), which keeps feedback");
}

}  // namespace fcp

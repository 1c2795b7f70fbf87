// The tables of a feedback store, and what becomes of those that another version of fcp has made.
//
// `fcp_schema` names the version of the tables. Version 1 had no such table; earlier versions are
// brought up to date where a server opens them, and their truths are kept. What came before, and
// what a newer fcp
// has made, is refused in one line.
// Tested by tests/server/feedback_store_test.cc.
#pragma once

#include "apps/server/sql_database.h"

namespace fcp {

// Makes the tables, or brings them up to date, in one transaction.
void make_schema(SqlDatabase& database);

// An Error where the tables are not those of this version.
void check_schema(SqlDatabase& database);

}  // namespace fcp

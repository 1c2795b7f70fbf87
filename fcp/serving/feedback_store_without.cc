// Where fcp was built without SQLite.
#include "fcp/base/error.h"
#include "fcp/serving/feedback_store.h"

namespace fcp {

std::unique_ptr<FeedbackStore> open_feedback_store(const std::string& folder, const StoreLimits&) {
  fail(folder, ": this fcp was built without SQLite (libsqlite3-dev), which keeps feedback");
}

}  // namespace fcp

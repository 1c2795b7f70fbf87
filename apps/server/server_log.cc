#include "apps/server/server_log.h"

#include <chrono>
#include <utility>

namespace fcp {

void ServerLog::write_always(Severity severity, const std::string& event,
                             const Fields& fields) const {
  constexpr const char* kNames[] = {"INFO", "WARNING", "ERROR"};
  Fields line = {{"severity", kNames[static_cast<int>(severity)]}, {"event", event}};
  line.update(fields);
  sink_(line.dump(-1, ' ', false, Fields::error_handler_t::replace));
}

void ServerLog::write(Severity severity, const std::string& event, const Fields& fields) {
  uint64_t dropped = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!rate_.allows(event, std::chrono::steady_clock::now())) {
      ++dropped_[event];
      return;
    }
    dropped = std::exchange(dropped_[event], 0);
  }
  if (dropped == 0) return write_always(severity, event, fields);
  Fields more = fields;
  more["dropped"] = dropped;
  write_always(severity, event, more);
}

}  // namespace fcp

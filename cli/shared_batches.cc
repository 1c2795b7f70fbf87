#include "cli/shared_batches.h"

#include "fcp/base/interrupt.h"
#include "fcp/distributed/relay.h"

namespace fcp {

void share_batches(Communicator& ranks, RowSource& source, size_t size,
                   const std::function<std::string(size_t, const Rows&)>& measure,
                   const std::function<void(size_t, std::string_view)>& take) {
  Rows rows;
  size_t place = 0;  // the batch that the source is at
  const auto make = [&](size_t batch) -> std::optional<std::string> {
    check_interrupted();
    if (batch > place) source.skip((batch - place) * size);
    place = batch + 1;
    if (!source.next(size, rows)) return std::nullopt;
    return measure(batch, rows);
  };
  relay_batches(ranks, make, take);
  check_interrupted();
}

}  // namespace fcp

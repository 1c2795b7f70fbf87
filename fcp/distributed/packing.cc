#include "fcp/distributed/packing.h"

#include <algorithm>
#include <vector>

namespace fcp {
namespace {

using Make = std::function<std::optional<std::string>(size_t)>;

void send_batches(Communicator& ranks, const Make& make) {
  const auto size = static_cast<size_t>(ranks.size());
  for (auto batch = static_cast<size_t>(ranks.rank());; batch += size) {
    const std::string result = make(batch).value_or("");
    ranks.send(result, 0);
    if (result.empty()) return;  // which says that there are no more
  }
}

}  // namespace

void relay_batches(Communicator& ranks, const Make& make,
                   const std::function<void(size_t, std::string_view)>& take) {
  if (ranks.rank() != 0) return send_batches(ranks, make);
  std::vector<bool> open(static_cast<size_t>(ranks.size()), true);
  std::string result;
  for (size_t batch = 0; std::find(open.begin(), open.end(), true) != open.end(); ++batch) {
    const size_t rank = batch % open.size();
    if (!open[rank]) continue;
    if (rank == 0) {
      result = make(batch).value_or("");
    } else {
      ranks.receive(result, static_cast<int>(rank));
    }
    open[rank] = !result.empty();
    if (open[rank]) take(batch, result);
  }
}

}  // namespace fcp

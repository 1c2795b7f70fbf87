// The rows of a source in batches that ranks share: batch b, rows b · size and following, is read
// by rank b mod R, which passes over the others.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fcp/data/rows.h"
#include "fcp/distributed/communicator.h"

namespace fcp {

// `measure` turns rows into bytes, on the rank whose batch it is; `take` has them on rank 0, batch
// by batch. Between batches an interrupt is seen.
void share_batches(Communicator& ranks, RowSource& source, size_t size,
                   const std::function<std::string(size_t batch, const Rows& rows)>& measure,
                   const std::function<void(size_t batch, std::string_view result)>& take);

}  // namespace fcp

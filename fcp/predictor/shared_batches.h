// The rows of a source, batch by batch, on one rank or shared by several. Between batches an
// interrupt is seen.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fcp/data/rows.h"
#include "fcp/distributed/communicator.h"
#include "fcp/predictor/context.h"

namespace fcp {

// Gives every batch to `take`; the observer hears of a stage of this name. Returns the number of
// rows.
size_t each_batch(RowSource& source, const Context& context, std::string_view stage,
                  const std::function<void(const Rows& rows)>& take);

// Batches that ranks share: batch b, rows b · size and following, is read by rank b mod R, which
// passes over the others. `measure` turns rows into bytes, on the rank whose batch it is; `take`
// has them on rank 0, batch by batch. At the end, check_same_files: what several ranks read of a
// file must be the same bytes.
void share_batches(Communicator& ranks, RowSource& source, size_t size,
                   const std::function<std::string(size_t batch, const Rows& rows)>& measure,
                   const std::function<void(size_t batch, std::string_view result)>& take);

// An Error on rank 0 where two ranks read different bytes in the same block of a file that is
// open now: it was changed between. Collective; costs 16 bytes a rank for each 64 KiB of the files.
void check_same_files(Communicator& ranks);

// An Error where the bytes of the ranks differ, by their SHA-256. `what` names them.
void check_same_bytes(Communicator& ranks, const std::string& what, std::string_view bytes);

}  // namespace fcp

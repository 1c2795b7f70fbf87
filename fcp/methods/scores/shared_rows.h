// A score whose rows are shared among threads, each of which runs its rows by itself. Sharing every
// operation instead costs a meeting of all threads per operation: more than small heads compute,
// and on a busy machine many times as much. Scores and regions keep their bits, because those of a
// row do not depend on the rows beside it.
//
// On the CPU, from some dozens of rows on; otherwise the score runs as it is.
// Tested by tests/methods/scores/shared_rows_test.cc.
#pragma once

#include <memory>

#include "fcp/methods/scores/score.h"

namespace fcp {

std::unique_ptr<Score> share_rows(std::unique_ptr<Score> score,
                                  const std::shared_ptr<const Network>& head);

}  // namespace fcp

#include "fcp/scores/nested.h"

#include <utility>

#include "fcp/scores/band_score.h"
#include "fcp/scores/outputs.h"

namespace fcp {

std::unique_ptr<Score> make_nested(const ScoreOptions& options,
                                   std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, options.output);
  return make_band_score(options, std::move(head), {.low = output, .high = output});
}

}  // namespace fcp

#include "fcp/scores/nested.h"

#include <utility>

#include "fcp/scores/band_score.h"
#include "fcp/scores/outputs.h"
#include "fcp/scores/relu_nested.h"

namespace fcp {

std::unique_ptr<Score> make_nested(const ScoreOptions& options,
                                   std::shared_ptr<const Network> head) {
  const size_t output = output_index(*head, options.output);
  std::unique_ptr<Score> general = make_band_score(options, head, {.low = output, .high = output});
  return with_relu_nested(options, *head, output, std::move(general));
}

}  // namespace fcp

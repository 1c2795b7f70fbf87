#include "fcp/pipeline/train.h"

#include <nlohmann/json.hpp>

#include "fcp/base/error.h"
#include "fcp/data/encoding_text.h"

namespace fcp {

TrainResult train_rows(RowSource& source, const TrainOptions& options, const Context& context) {
  const Rows rows = read_all(source);
  Stage stage(context, "train",
              static_cast<size_t>(most_train_steps(static_cast<int64_t>(rows.x.rows()), options)));
  TrainResult result = train_network(rows.x, rows.y, options, [&](const TrainStep& step) {
    stage.advance(1, [&] {
      return concat(step.fit.refit ? "refit, epoch " : "epoch ", step.fit.epoch, ", loss ",
                    step.fit.loss);
    });
  });
  if (source.encoding() != nullptr) {
    result.graph.metadata[kEncodingKey] = encoding_text(*source.encoding());
  }
  if (!source.target_names().empty()) {
    result.graph.metadata[kTargetsKey] = nlohmann::json(source.target_names()).dump();
  }
  return result;
}

}  // namespace fcp

#include "fcp/fit/test_report.h"

#include <algorithm>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/data/row_sources.h"
#include "fcp/evaluate/evaluate.h"
#include "fcp/evaluate/explain.h"
#include "fcp/fit/column_warnings.h"
#include "fcp/predictor/predictor_core.h"

namespace fcp {
namespace {

std::vector<ColumnUse> column_uses(const TableSchema& schema) {
  std::vector<ColumnUse> uses;
  for (const TableColumn& column : schema.columns) {
    const bool read = is_read(column.format.kind);
    uses.push_back({column.name, format_text(column.format),
                    column.target    ? "target"
                    : column.dropped ? "left out: dropped"
                    : read           ? "feature"
                                     : concat("left out: ", column.why),
                    column.missing});
  }
  return uses;
}

ColumnCheck column_check(const FitRequest& options, bool classes) {
  const bool random = options.keep_together.empty() && options.time.empty();
  return {.groups = random, .time = random, .classes = classes};
}

// Which rows are looked at, and by which parts coverage is shown besides.
EvaluateOptions evaluation_of(const FitRequest& options, const MadeFrom& from) {
  EvaluateOptions evaluation{.level = options.level, .all_levels = options.all_levels};
  evaluation.facts = take_facts(from.facts, from.split.test);
  evaluation.periods = test_periods(from.split);
  evaluation.together = take_groups(from.split.groups, from.split.test);
  evaluation.origin = !from.split.times.empty()    ? RowsOrigin::kLater
                      : !from.split.groups.empty() ? RowsOrigin::kNewGroups
                                                   : RowsOrigin::kRandomSplit;
  return evaluation;
}

// At most `count` of them, from the first to the last.
std::vector<size_t> spread_evenly(const std::vector<size_t>& rows, size_t count) {
  if (rows.size() <= count) return rows;
  std::vector<size_t> some;
  for (size_t i = 0; i < count; ++i) some.push_back(rows[i * rows.size() / count]);
  return some;
}

std::optional<Explanation> column_importance(const MadeFrom& from,
                                             const CalibrationArtifact& artifact,
                                             const Level& level, const Context& context) {
  constexpr size_t kPredictions = 20'000, kOfSearches = 1'000, kMostColumns = 1000;
  constexpr size_t kFewestRows = 50, kMostRows = 500, kRowsOfSearches = 20;
  const bool searches = artifact.method.score.searches();
  const CsvEncoding* encoding = from.source.encoding();
  const size_t columns = encoding ? encoding->columns.size() : from.all.x.row_size();
  if (columns == 0 || columns > kMostColumns || from.all.x.shape.size() != 2) return {};
  const size_t rows = searches ? std::min(kOfSearches / columns, kRowsOfSearches)
                               : std::clamp(kPredictions / columns, kFewestRows, kMostRows);
  const std::vector<size_t> which = spread_evenly(from.split.test, rows);
  if (which.size() < 2) return {};
  TableRows source(from.source, from.all, which);
  const internal::PredictorCore predictor(artifact, context.device);
  ExplainOptions options{.level = level,
                         .facts = take_facts(from.facts, which),
                         .rows = which.size(),
                         .shuffles = 1,
                         .widest = 0,
                         .finite = false};
  return explain(predictor, source, options, context);
}

}  // namespace

EvaluationReport test_report(const MadeFrom& from, const CalibrationArtifact& artifact,
                             const FitRequest& options, const DataOptions& data,
                             const Context& context) {
  TableRows test(from.source, from.all, from.split.test);
  EvaluationReport report = evaluate(artifact, test, evaluation_of(options, from), context);
  report.importance = column_importance(from, artifact, options.level, context);
  report.provenance.emplace_back("test data", data_file_names(data));
  report.title = concat(data_file_names(data), ": ", data.target);
  const bool classes = artifact.method.score.traits().labels;
  for (std::string& warning :
       column_warnings(data, from.source.schema(), from.all.y, column_check(options, classes))) {
    report.notes.push_back(std::move(warning));
  }
  report.split = from.split.text;
  if (from.source.schema() != nullptr) report.columns = column_uses(*from.source.schema());
  return report;
}

}  // namespace fcp

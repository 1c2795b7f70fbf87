#include "fcp/scores/score.h"

#include <map>
#include <utility>

#include "fcp/base/error.h"
#include "fcp/scores/aps.h"
#include "fcp/scores/cqr.h"
#include "fcp/scores/cross.h"
#include "fcp/scores/cross_labels.h"
#include "fcp/scores/density.h"
#include "fcp/scores/feature_cqr.h"
#include "fcp/scores/feature_margin.h"
#include "fcp/scores/feature_sampled.h"
#include "fcp/scores/lac.h"
#include "fcp/scores/linearized.h"
#include "fcp/scores/nested.h"
#include "fcp/scores/quantiles.h"
#include "fcp/scores/rectified.h"
#include "fcp/scores/residual.h"
#include "fcp/scores/shared_rows.h"
#include "fcp/scores/spread.h"
#include "fcp/scores/surrogate.h"

namespace fcp {
namespace {

struct ScoreEntry {
  std::unique_ptr<Score> (*make)(const ScoreOptions&, std::shared_ptr<const Network>);
  bool uses_features;
  const char* baseline;  // the plain score it is compared with; empty: it is plain itself
};

const std::map<std::string, ScoreEntry>& entries() {
  static const std::map<std::string, ScoreEntry> table = {
      {"aps", {make_aps, false, "lac"}},
      {"cqr", {make_cqr, false, ""}},
      {kCrossScore, {make_cross, false, ""}},
      {kCrossLabelScore, {make_cross_labels, false, "lac"}},
      {"density", {make_density, false, "residual"}},
      {"feature_cqr", {make_feature_cqr, true, "cqr"}},
      {"feature_margin", {make_feature_margin, true, "lac"}},
      {"feature_sampled", {make_feature_sampled, true, "lac"}},
      {"lac", {make_lac, false, ""}},
      {"linearized", {make_linearized, true, "residual"}},
      {"nested", {make_nested, true, "residual"}},
      {"quantiles", {make_quantiles, false, "residual"}},
      {"raps", {make_raps, false, "lac"}},
      {"residual", {make_residual, false, ""}},
      {"spread", {make_spread, false, "residual"}},
      {"surrogate", {make_surrogate, true, "residual"}},
  };
  return table;
}

const ScoreEntry& entry(const std::string& name) {
  const auto found = entries().find(name);
  if (found != entries().end()) return found->second;
  std::string known;
  for (const std::string& other : score_names()) known += (known.empty() ? "" : ", ") + other;
  fail("there is no score '", name, "'; there are ", known);
}

}  // namespace

bool uses_features(const std::string& score) { return entry(score).uses_features; }

bool predicts_labels(const std::string& score) {
  return score == "lac" || entry(score).baseline == std::string("lac");
}

std::string baseline_of(const std::string& score) { return entry(score).baseline; }

bool searches_surrogate(const ScoreOptions& score) {
  return score.name == "surrogate" || score.name == "feature_sampled" ||
         (score.name == "feature_cqr" && score.paper);
}

bool obeys_law(const ScoreOptions& score) { return !searches_surrogate(score); }

std::vector<std::string> score_names() {
  std::vector<std::string> names;
  for (const auto& [name, ignored] : entries()) {
    if (!is_cross_score(name)) names.push_back(name);
  }
  return names;
}

std::unique_ptr<Score> make_score(const ScoreOptions& options,
                                  std::shared_ptr<const Network> head) {
  const bool counts_pixels =
      options.name == "residual" || options.name == "nested" || options.name == "lac";
  if (options.pixels != 0 && options.pixels != 1 && !counts_pixels) {
    fail(options.name, ": a share of the pixels (", options.pixels,
         ") can be asked of residual, nested and lac alone");
  }
  std::unique_ptr<Score> score = options.rectifier.empty() ? entry(options.name).make(options, head)
                                                           : make_rectified(options, head);
  // Images are few and large, a search of surrogates shares its rows itself, and scores of labels
  // are asked for more than a Score has.
  const bool shared = options.pixels == 0 && score->classes() == 0 && !searches_surrogate(options);
  return shared ? share_rows(std::move(score), head) : std::move(score);
}

}  // namespace fcp

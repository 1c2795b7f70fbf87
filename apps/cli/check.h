// Outliers as `fcp check` tells them: of rows without answers, by distances between features, and
// what is said of those that were found, whatever told them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fcp/outliers.h"

#include "apps/cli/common.h"
#include "apps/cli/option_flags.h"

namespace fcp::cli {

// How many may be false, of which p-values.
struct OutlierRate {
  Level rate = Level(0.1);
  Dependence dependence = Dependence::kPositive;
};

struct FlaggedRow {
  size_t row = 0;
  std::vector<double> scores;  // one for each side
  double p_value = 0;
};

// Adds the rate, the rule and the rows.
void add_outliers(nlohmann::ordered_json& json, const OutlierRate& rate,
                  const std::vector<FlaggedRow>& flagged);
// How many there are, and the most unusual ones.
void say_outliers(const CommonOptions& common, const OutlierRate& rate,
                  std::vector<FlaggedRow> flagged, size_t rows);

// Of rows without answers.
struct ReferenceFlags {
  std::string rows;     // usual ones; empty: rows have answers
  std::string weights;  // of them, where --weights is an .npy file
  std::string score;    // the others: empty or 0 where they are not given
  std::string cut;
  size_t neighbours = 0;

  bool any() const {
    return !rows.empty() || !weights.empty() || !score.empty() || !cut.empty() || neighbours > 0;
  }
};
void add_reference(CLI::App& verb, ReferenceFlags& flags);

struct FeatureCheck {
  const CommonOptions& common;
  const DataFlags& data;
  const ReferenceFlags& reference;
  std::string model, weights, keep, out;
  Level rate = Level(0.1);
};
void check_features(const FeatureCheck& asked);

}  // namespace fcp::cli

#include "fcp/calibration/calibration.h"

#include <algorithm>

#include "fcp/base/error.h"
#include "fcp/calibration/grouped.h"
#include "fcp/calibration/localized.h"
#include "fcp/calibration/weighted.h"
#include "fcp/conformal/p_value.h"
#include "fcp/conformal/quantile.h"

namespace fcp {
namespace {

class Split : public Calibration {
 public:
  Split(const CalibrationOptions& options, const CalibrationRows& rows) : options_(options) {
    for (int64_t side = 0; side < rows.sides; ++side) {
      sorted_.push_back(sorted_scores(side_scores(rows, side)));
    }
  }

  torch::Tensor radii(const NewRows& rows, const Level& level) const override {
    const auto sides = static_cast<int64_t>(sorted_.size());
    const Level each = side_level(level, sides, options_);
    torch::Tensor radius = torch::empty({1, sides}, torch::kDouble);
    for (int64_t side = 0; side < sides; ++side) {
      const std::vector<double>& scores = sorted_[static_cast<size_t>(side)];
      double value = conformal_quantile_sorted(scores, each);
      if (options_.paper && !scores.empty()) value = std::min(value, scores.back());
      radius[0][side] = value;
    }
    return radius.expand({rows.features.size(0), sides});
  }

  std::vector<double> p_values(const NewRows&, std::span<const double> scores) const override {
    std::vector<double> result;
    std::vector<double> each(sorted_.size());
    for (size_t at = 0; at < scores.size(); at += each.size()) {
      for (size_t side = 0; side < each.size(); ++side) {
        each[side] = conformal_p_value(sorted_[side], scores[at + side]).value();
      }
      result.push_back(join_sides(each, options_));
    }
    return result;
  }

 private:
  CalibrationOptions options_;
  std::vector<std::vector<double>> sorted_;  // one a side
};

}  // namespace

std::vector<double> side_scores(const CalibrationRows& rows, int64_t side) {
  std::vector<double> scores;
  scores.reserve(rows.count());
  const auto sides = static_cast<size_t>(rows.sides);
  for (size_t at = static_cast<size_t>(side); at < rows.scores.size(); at += sides) {
    scores.push_back(rows.scores[at]);
  }
  return scores;
}

Level side_level(const Level& level, int64_t sides, const CalibrationOptions& options) {
  return sides == 1 || options.paper ? level : level.divided_by(static_cast<uint64_t>(sides));
}

double join_sides(std::span<const double> p_values, const CalibrationOptions& options) {
  const double least = *std::min_element(p_values.begin(), p_values.end());
  return options.paper ? least : std::min(1.0, least * static_cast<double>(p_values.size()));
}

std::unique_ptr<Calibration> make_calibration(const CalibrationOptions& options,
                                              const CalibrationRows& rows, int64_t classes) {
  if (options.name == "split") return std::make_unique<Split>(options, rows);
  if (options.name == "grouped") return make_grouped(options, rows, classes);
  if (options.name == "localized") return make_localized(options, rows);
  if (options.name == "weighted") return make_weighted(options, rows);
  fail("there is no calibration '", options.name,
       "'; there are split, grouped, localized and weighted");
}

}  // namespace fcp
